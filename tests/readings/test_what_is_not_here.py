"""Files that import what is not installed, or that another file of theirs defines; and definitions that are not graded."""

from __future__ import annotations

import pytest
from tests.readings.pairs import told
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine
from attn_kata.report.model import Report

ATTENTION = """
class Attention(nn.Module):
    def __init__(self, width, n_heads, drop=0.1):
        super().__init__()
        self.n_heads = n_heads
        self.to_q, self.to_k, self.to_v, self.to_out = (Linear(width, width) for _ in range(4))
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (f(x).view(B, T, self.n_heads, -1).transpose(1, 2) for f in (self.to_q, self.to_k, self.to_v))
        weights = (q @ k.mT / (E // self.n_heads) ** 0.5).softmax(-1)
        return self.to_out((self.drop(weights) @ v).transpose(1, 2).reshape(B, T, E))
"""
OWN = "Linear = nn.Linear\n" + ATTENTION


def graded(engine: Engine, text: str, slug: str = "mha", head: str = HEAD) -> Report:
    return engine.grade(slug, (head + text).encode(), attempt="mine.py", reads=True)


def test_imports_in_a_try_that_does_without_torch_are_taken_one_by_one(shared_engine: Engine) -> None:
    head = """
try:
    import torch
    import torch.nn as nn
    from .layers import Linear
except ModuleNotFoundError:
    torch = None
    nn = object
"""
    right, wrong = (
        graded(shared_engine, text, head=head)
        for text in (ATTENTION, ATTENTION.replace(" / (E // self.n_heads) ** 0.5", ""))
    )

    assert right.passed, right.ungraded_because
    assert told(wrong) == {"scale.missing"}


def test_a_switch_of_what_is_not_installed_still_runs_its_handler(shared_engine: Engine) -> None:
    head = HEAD + "try:\n    from flash_attn import flash\nexcept ImportError:\n    flash = None\n"
    text = OWN.replace("weights = (q", "if flash is not None:\n            return flash(q, k, v)\n        weights = (q")

    assert graded(shared_engine, text, head=head).passed


OF_GPT2 = """
class Attention(nn.Module):
    def __init__(self, nx, config):
        super().__init__()
        self.n_head = config.n_head
        self.c_attn, self.c_proj = Conv1D(3 * nx, nx), Conv1D(nx, nx)

    def prune_heads(self, index):
        self.c_proj = prune_conv1d_layer(self.c_proj, index, dim=0)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (part.view(B, T, self.n_head, -1).transpose(1, 2) for part in self.c_attn(x).split(E, dim=2))
        weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1)
        return self.c_proj((weights @ v).transpose(1, 2).reshape(B, T, E))
"""


def test_the_layer_of_gpt2_stands_for_itself(shared_engine: Engine) -> None:
    head = HEAD + "from transformers.pytorch_utils import Conv1D, prune_conv1d_layer\n"
    right = graded(shared_engine, OF_GPT2, head=head)
    wrong = graded(shared_engine, OF_GPT2.replace("q.size(-1) **", "E **"), head=head)

    assert right.passed, right.ungraded_because
    assert any("its Conv1D is read as that of GPT-2" in note for note in right.reading["notes"])
    assert told(wrong) == {"scale.embed_dim"}


def test_a_layer_of_that_name_that_is_linear_is_read_as_linear(shared_engine: Engine) -> None:
    own = "\nclass Conv1D(nn.Linear):\n    pass\n"
    text = OF_GPT2.replace("Conv1D(3 * nx, nx)", "Conv1D(nx, 3 * nx)")

    assert graded(shared_engine, own + text).passed


def test_a_layer_of_another_file_of_which_the_weight_alone_is_taken_has_no_bias(shared_engine: Engine) -> None:
    head = HEAD + "from cs336_basics.model import Linear\n"
    text = ATTENTION.replace(
        "(f(x).view(B, T, self.n_heads, -1).transpose(1, 2) for f in (self.to_q, self.to_k, self.to_v))",
        "((x @ w.T).view(B, T, self.n_heads, -1).transpose(1, 2) for w in "
        "(self.to_q.weight, self.to_k.weight, self.to_v.weight))",
    )

    assert text != ATTENTION
    assert graded(shared_engine, text, head=head).passed


def test_a_norm_and_a_dropout_of_a_base_class_of_another_file_change_nothing(shared_engine: Engine) -> None:
    head = HEAD + "from sublayer import SubLayer\n"
    text = OWN.replace("Attention(nn.Module)", "Attention(SubLayer)").replace(
        "        B, T, E = x.shape", "        x = self.layernorm(x)\n        B, T, E = x.shape"
    )
    text = text.replace(".softmax(-1)\n", ".softmax(-1)\n        weights = self.dropout(weights)\n")
    report = graded(shared_engine, text, head=head)

    assert report.passed
    said = "'sublayer' is not installed, and what its SubLayer makes is left out: layernorm, dropout"
    assert said in report.reading["notes"]


def test_weight_norm_is_left_out(shared_engine: Engine) -> None:
    head = HEAD + "from torch.nn.utils import weight_norm\n"
    for way in ("weight_norm(nn.Linear(width, width))", "nn.utils.weight_norm(nn.Linear(width, width))"):
        report = graded(shared_engine, ATTENTION.replace("Linear(width, width)", way), head=head)

        assert report.passed
        assert any(note.startswith("weight_norm is left out") for note in report.reading["notes"])


def test_a_buffer_that_is_none_without_a_length_gets_one(shared_engine: Engine) -> None:
    text = OWN.replace("drop=0.1):", "max_seq_len=None):").replace(
        "        self.drop = nn.Dropout(drop)\n",
        "        if max_seq_len is not None:\n"
        "            self.register_buffer('hidden', torch.ones(max_seq_len, max_seq_len).triu(1).bool())\n"
        "        else:\n"
        "            self.register_buffer('hidden', None)\n",
    )
    text = text.replace("** 0.5).softmax", "** 0.5).masked_fill(self.hidden[:T, :T], float('-inf')).softmax")
    text = text.replace("self.drop(weights)", "weights")
    report = graded(shared_engine, text)

    assert report.passed, report.ungraded_because
    assert "always causal" in report.reading["departures"]


def test_the_rate_of_a_dropout_that_is_left_out_can_be_read(shared_engine: Engine) -> None:
    text = OWN.replace(
        ".softmax(-1)\n", ".softmax(-1)\n        weights = torch.dropout(weights, self.drop.p, self.training)\n"
    ).replace("self.drop(weights)", "weights")
    report = graded(shared_engine, text)

    assert report.passed, report.ungraded_because


def test_the_masked_softmax_of_a_course_takes_a_mask_and_a_dimension(shared_engine: Engine) -> None:
    head = HEAD + "from util import masked_softmax\n"
    text = OWN.replace("def forward(self, x):", "def forward(self, x, mask):").replace(
        "weights = (q @ k.mT / (E // self.n_heads) ** 0.5).softmax(-1)",
        "weights = masked_softmax(q @ k.mT / (E // self.n_heads) ** 0.5, mask[:, None, None, :], dim=-1)",
    )
    right, wrong = (graded(shared_engine, each, head=head) for each in (text, text.replace("dim=-1", "dim=-2")))

    assert right.passed, right.ungraded_because
    assert "softmax.query_axis" in told(wrong)


WRITES = """
def attend(q, k, v, output, T):
    kernel_of(T // 2)(q, k, v, output)

def kernel_of(size):
    return lambda q, k, v, output: output.copy_(torch.softmax(q @ k.mT / q.size(-1) ** 0.5, -1) @ v)
"""


def test_a_function_that_writes_its_result_is_not_blamed_for_returning_none(shared_engine: Engine) -> None:
    assert graded(shared_engine, WRITES, "sdpa").outcome == "ungraded"


OTHER = """
class OtherAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.to_q, self.to_k = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        weights = (self.to_q(x) @ self.to_k(x).mT / self.size**0.5).softmax(-1)
        return F.dropout(weights, 0.1) @ x
"""


@pytest.mark.parametrize(
    "said",
    [
        "OtherAttention is not graded, but line {} reads an attribute that nothing in the file sets",
        "OtherAttention is not graded, but line {} drops in eval() too, as its functional dropout does "
        "not follow the mode (dropout.always)",
    ],
)
def test_what_the_lines_of_a_definition_show_that_is_not_graded_is_said(said: str, shared_engine: Engine) -> None:
    text = OWN.replace("class Attention", "class MultiHeadAttention") + OTHER
    report = graded(shared_engine, text)
    lines = (HEAD + text).splitlines()
    at = {True: lines.index(OTHER.splitlines()[7]) + 1, False: lines.index(OTHER.splitlines()[8]) + 1}[
        "attribute" in said
    ]

    assert report.passed
    assert any(note.startswith(said.format(at)) for note in report.notes), report.notes


def test_one_layer_for_all_roles_is_named_where_they_cannot_be_told_apart(shared_engine: Engine) -> None:
    text = OWN.replace(
        "self.to_q, self.to_k, self.to_v, self.to_out = (Linear(width, width) for _ in range(4))",
        "self.to_q, self.to_k, self.to_v, self.to_out = nn.ModuleList([Linear(width, width)] * 4)",
    )
    report = graded(shared_engine, text)

    assert report.outcome == "failed"
    assert told(report) == {"module.repeated"}


def test_a_mask_that_the_call_never_reads_is_said_where_nothing_is_graded(shared_engine: Engine) -> None:
    text = OWN.replace("def forward(self, x):", "def forward(self, x, pad_mask=None):")
    text = text.replace("B, T, E = x.shape", "B, T, E = missing_helper(x).shape")
    said = "forward never reads 'pad_mask'. If that should hide keys, this is mask.lost"
    never, reads = (graded(shared_engine, each) for each in (text, text.replace("to_out((", "to_out(pad_mask * (")))

    assert never.outcome == reads.outcome == "ungraded"
    assert [said in each.notes for each in (never, reads)] == [True, False]


def test_a_softmax_without_a_dimension_is_said_where_nothing_is_graded(shared_engine: Engine) -> None:
    text = (
        OWN.replace("(q @ k.mT", "F.softmax(q @ k.mT")
        .replace(").softmax(-1)", ")")
        .replace("x.shape", "missing_helper(x).shape")
    )
    report = graded(shared_engine, text)

    assert report.outcome == "ungraded"
    assert any("(softmax.no_dim)" in note for note in report.notes), report.notes


def test_a_further_base_of_another_file_is_left_out(shared_engine: Engine) -> None:
    own = f"from .base import Extra\n{OWN}".replace("(nn.Module):", "(nn.Module, Extra):")
    right, wrong = (graded(shared_engine, text) for text in (own, own.replace(" / (E // self.n_heads) ** 0.5", "")))

    assert own.count("Extra") == 2
    assert right.passed, right.ungraded_because
    assert told(wrong) == {"scale.missing"}


INFORMER = """
from utils.masking import TriangularCausalMask


class FullAttention(nn.Module):
    def __init__(self, mask_flag=True, scale=None, attention_dropout=0.1):
        super().__init__()
        self.mask_flag, self.scale = mask_flag, scale
        self.dropout = nn.Dropout(attention_dropout)

    def forward(self, queries, keys, values, attn_mask):
        B, L, H, E = queries.shape
        scores = torch.einsum("blhe,bshe->bhls", queries, keys)
        if self.mask_flag:
            if attn_mask is None:
                attn_mask = TriangularCausalMask(B, L, device=queries.device)
            scores.masked_fill_(attn_mask.mask, -float("inf"))
        weights = self.dropout(torch.softmax((self.scale or E**-0.5) * scores, dim=-1))
        return torch.einsum("bhls,bshd->blhd", weights, values).contiguous()
"""


def test_the_causal_mask_of_informer_is_there(shared_engine: Engine) -> None:
    right, wrong = (
        graded(shared_engine, text, "sdpa")
        for text in (INFORMER, INFORMER.replace("scores.masked_fill_(attn", "scores.masked_fill_(~attn"))
    )

    assert right.passed, right.ungraded_because
    assert not wrong.passed


ON_A_DEVICE = OWN.replace("        B, T, E = x.shape", "        B, T, E = x.to(device).shape")
_SETS_NOWHERE = "Nothing in the file sets device."


@pytest.mark.parametrize(
    ("below", "is_said"),
    [('\nif __name__ == "__main__":\n    device = torch.device("cuda")\n', False), ("", True)],
)
def test_a_device_that_the_script_sets_is_the_processor(shared_engine: Engine, below: str, is_said: bool) -> None:
    report = graded(shared_engine, ON_A_DEVICE + below)

    assert report.passed, report.ungraded_because
    assert any(note.startswith(_SETS_NOWHERE) for note in (report.reading or {})["notes"]) == is_said


OF_A_FILE = ATTENTION.replace("Linear(width, width)", "layers.Linear(width, width)").replace(
    "nn.Dropout(drop)", "DropPath(drop)"
)


def test_layers_of_a_module_that_is_not_here_are_torchs_and_what_drops_paths_drops_nothing(
    shared_engine: Engine,
) -> None:
    head = HEAD + "from .more import DropPath, print_sizes, default_device\nfrom . import layers\n"
    text = OF_A_FILE.replace("B, T, E = x.shape", "B, T, E = x.to(default_device).shape\n        print_sizes(B, T)")
    text = text.replace("self.to_out((", "self.to_out(self.drop(")
    text = text.replace(
        "        self.drop =", "        self.spare = nn.Linear(1, 1)\n        self.drop ="
    )  # torch's own, beside it
    right, wrong = (
        graded(shared_engine, each, head=head) for each in (text, text.replace(" / (E // self.n_heads) ** 0.5", ""))
    )

    assert right.passed, right.ungraded_because
    assert told(wrong) == {"scale.missing"}
    notes = " ".join((right.reading or {})["notes"])
    assert "its Linear is read as nn.Linear" in notes
    assert "its DropPath is read as a layer that drops nothing" in notes


def test_what_stands_for_a_layer_of_a_module_may_refuse_its_arguments(shared_engine: Engine) -> None:
    head = HEAD + "from . import layers\n"
    text = ATTENTION.replace("Linear(width, width)", "layers.Linear(width, width, gain=2)")
    report = graded(shared_engine, text, head=head)

    assert report.outcome == "ungraded"
    assert not told(report)
    known = graded(shared_engine, OWN.replace("nn.Dropout(drop)", "nn.Dropout(drop, gain=2)"))
    assert told(known) == {"python.arguments"}


def test_a_softmax_of_a_module_that_is_given_scores_is_the_function(shared_engine: Engine) -> None:
    head = HEAD + "from . import layers\n"
    text = OWN.replace(
        "(q @ k.mT / (E // self.n_heads) ** 0.5).softmax(-1)",
        "layers.Softmax(q @ k.mT / (E // self.n_heads) ** 0.5, AXIS)",
    )
    right, wrong = (graded(shared_engine, text.replace("AXIS", axis), head=head) for axis in ("-1", "-2"))

    assert right.passed, right.ungraded_because
    assert told(wrong) == {"softmax.query_axis"}
