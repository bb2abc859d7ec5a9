"""What a whole file brings along: methods that nobody calls, other classes, a GPU, loggers, definitions that cannot run."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD
from tests.readings.test_search import read

from attn_kata.readings.adapters import adapter
from attn_kata.readings.choice import Chosen

UNUSED = (
    ATTEND
    + """
    def causal_mask(self, length):
        return torch.tril(torch.ones(length, length))
"""
)
IN_A_BRANCH = (
    ATTEND.replace("mask=None):", "mask=None, table=None):").replace(
        "        if mask is not None:",
        "        if table is not None:\n            scores = scores + skewed(scores)\n        if mask is not None:",
    )
    + """

def skewed(scores):
    kept = torch.triu(torch.ones_like(scores)).flip(-1)
    return scores * kept
"""
)


@pytest.mark.parametrize("text", [UNUSED, IN_A_BRANCH])
def test_a_triangle_that_no_call_makes_hides_nothing(text):
    right, wrong = read(HEAD + text, "mha"), read(HEAD + text.replace("mask == 0", "mask == 7"), "mha")

    assert isinstance(right, Chosen)
    assert (right.mistakes, right.reading.causal, right.reading.mask) == (0, False, "keep")
    assert isinstance(wrong, Chosen)
    assert wrong.mistakes > 0


def test_a_triangle_that_a_method_makes_and_forward_calls_hides_later_keys():
    text = UNUSED.replace(
        '        if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))\n',
        '        scores = scores.masked_fill(self.causal_mask(T) == 0, float("-inf"))\n',
    ).replace(", mask=None", "")
    lost = text.replace("scores = scores.masked_fill", "scores.masked_fill")

    assert read(HEAD + text, "mha").reading.causal
    assert (read(HEAD + lost, "mha").reading.causal, read(HEAD + lost, "mha").mistakes) == (True, 1)


BASE = """
class SelfAttend(nn.Module):
    def __init__(self, width, n_heads, p=0.1, masking=False):
        super().__init__()
        self.h, self.masking = n_heads, masking
        self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)
        self.w_v, self.w_o = nn.Linear(width, width), nn.Linear(width, width)
        self.drop = nn.Dropout(p)

    def attend(self, x, context):
        q, k, v = self.w_q(x), self.w_k(context), self.w_v(context)
        q, k, v = (one.unflatten(-1, (self.h, -1)).transpose(1, 2) for one in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.masking:
            kept = torch.tril(torch.ones(scores.shape[-2:]))
            scores = scores.masked_fill(kept == 0, float("-inf"))
        return self.w_o((self.drop(scores.softmax(-1)) @ v).transpose(1, 2).flatten(2))

    def forward(self, x):
        return self.attend(x, x)


class CrossAttend(SelfAttend):
    def __init__(self, width, n_heads):
        super().__init__(width, n_heads)
        self.masking = False

    def forward(self, x, context):
        return self.attend(x, context)
"""


def test_a_triangle_that_a_class_switches_off_in_its_base_hides_nothing():
    """Nor is a dropout counted whose rate only the base could be given."""
    found = read(HEAD + BASE, "cross_attention", "entry=CrossAttend")

    assert isinstance(found, Chosen)
    assert (found.mistakes, found.reading.causal, found.reading.bypassed) == (0, False, ("drop",))


HANDED_ON = BASE.replace(
    "def __init__(self, width, n_heads):\n        super().__init__(width, n_heads)",
    "def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)",
)


def test_a_constructor_that_hands_everything_on_takes_what_its_base_takes():
    found = read(HEAD + HANDED_ON, "cross_attention", "entry=CrossAttend")

    assert isinstance(found, Chosen)
    assert [name for name, _ in found.reading.build] == ["width", "n_heads", "p"]
    assert found.mistakes == 0


def test_what_a_file_puts_on_a_gpu_stays_on_the_processor(shared_engine):
    on_gpu = "device = torch.device('cuda')\n" + ATTEND.replace(
        "        B, T, E = x.shape", "        x = x.to(device)\n        B, T, E = x.shape"
    )
    by_method = ATTEND.replace("math.sqrt(self.d)", "torch.tensor(self.d).cuda().sqrt()")
    reports = [
        shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (on_gpu, by_method)
    ]
    wrong = shared_engine.grade(
        "mha", (HEAD + on_gpu.replace("math.sqrt(self.d)", "math.sqrt(E)")).encode(), attempt="mine.py", reads=True
    )

    assert [one.outcome for one in reports] == ["passed", "passed"]
    assert all("what it puts on a GPU stays on the processor" in one.reading["departures"] for one in reports)
    assert [mistake.id for one in wrong.diagnosis for mistake in one.mistakes] == ["scale.embed_dim"]


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("from utils import get_logger\nlogger = get_logger(__name__)\n", "logger.warning_once('slow')"),
        ("", "device = next(self.parameters()).device"),
        ("", "device = next(self.w_q.parameters()).device"),
    ],
)
def test_what_code_asks_for_beside_its_attention_is_there(before, inside, shared_engine):
    text = before + ATTEND.replace("        B, T, E = x.shape", f"        {inside}\n        B, T, E = x.shape")
    text = text.replace("nn.Linear(width, width)", "nn.Linear(width, width, bias=False)")

    assert shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True).outcome == "passed"


def test_a_class_that_cannot_be_defined_is_told_with_what_it_raises(shared_engine):
    text = "import math\nimport torch\nimport torch.nn\n" + ATTEND.replace("F.softmax", "torch.softmax")
    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)
    message = next(one.message for one in report.findings if one.outcome == "failed")

    assert (report.outcome, report.reading["entry"]) == ("failed", "SelfAttend")
    assert "name 'nn' is not defined, line 5" in message


BLOCK = (
    ATTEND.replace("mask=None", "mask")
    + """

class Block(nn.Module):
    def __init__(self, width, n_heads, hidden):
        super().__init__()
        self.attn, self.ln1, self.ln2 = SelfAttend(width, n_heads), Norm(width), Norm(width)
        self.ff = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x, mask):
        x = x + self.attn(self.ln1(x), mask)
        return x + self.ff(self.ln2(x))
"""
)
MAKERS = {
    "lambda": "Norm = lambda width: nn.LayerNorm(width, eps=1e-6)\n",
    "partial": "from functools import partial\nNorm = partial(nn.LayerNorm, eps=1e-6)\n",
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_norms_that_a_line_at_module_level_makes_are_read_with_it(maker):
    found = read(HEAD + maker + BLOCK, "transformer_block", "entry=Block")

    assert isinstance(found, Chosen)
    assert (found.mistakes, "eps_6" in found.reading.conventions) == (0, True)


def test_norms_by_the_variance_of_a_sample_are_a_convention_and_are_said():
    norm = """
class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return self.weight * (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5) + self.bias
"""
    found = read(HEAD + norm + BLOCK, "transformer_block", "entry=Block")

    assert isinstance(found, Chosen)
    assert (found.mistakes, "sample_variance" in found.reading.conventions) == (0, True)
    assert "block.unbiased_variance" in [one.mistake for one in found.limits.conventions]


ROTATING = """
class RotaryTable(nn.Module):
    def __init__(self, dim, length=64):
        super().__init__()
        assert dim % 2 == 0, "an even size of heads"
        self.angles = torch.outer(torch.arange(length).float(), 10000.0 ** (-torch.arange(0, dim, 2) / dim))

    def forward(self, length):
        return self.angles[:length].cos(), self.angles[:length].sin()


def apply_rotary(x, cos, sin):
    first, second = x[..., ::2], x[..., 1::2]
    return torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1).flatten(-2)
"""
TURNED = ROTATING + ATTEND.replace(
    "        self.w_q,", "        self.rope = RotaryTable(self.d)\n        self.w_q,", 1
).replace(
    "        scores = q",
    "        cos, sin = self.rope(T)\n        q, k = apply_rotary(q, cos, sin), apply_rotary(k, cos, sin)\n        scores = q",
)


def test_a_rotation_that_wants_heads_of_an_even_size_is_left_out_when_it_is_built():
    right, wrong = read(HEAD + TURNED, "mha"), read(HEAD + TURNED.replace("math.sqrt(self.d)", "math.sqrt(E)"), "mha")

    assert isinstance(right, Chosen), right
    assert (right.mistakes, right.reading.multiple) == (0, 2)
    assert read(HEAD + TURNED, "mha", *right.reading.flags()).reading == right.reading
    assert wrong.mistakes == 1


PROJECTED = (
    ATTEND.replace("nn.Linear(width, width)\n\n", "(nn.Identity() if n_heads == 1 else nn.Linear(width, width))\n\n")
    .replace(", mask=None", "")
    .replace('        if mask is not None:\n            scores = scores.masked_fill(mask == 0, float("-inf"))\n', "")
)


def test_an_output_layer_that_is_left_out_for_one_head_is_no_mistake(shared_engine):
    report = shared_engine.grade("mha", (HEAD + PROJECTED).encode(), attempt="mine.py", reads=True)
    lost = shared_engine.grade(
        "mha", (HEAD + PROJECTED.replace("self.w_o((weights", "((weights")).encode(), attempt="mine.py", reads=True
    )

    assert (report.outcome, lost.outcome) == ("passed", "failed")


QUANTISED = """
class RoundedLinear(nn.Linear):
    def forward(self, x):
        return F.linear(x, (self.weight / self.weight.abs().mean()).round(), self.bias)
"""
CLASS_TOKEN = ATTEND.replace("        return out", "        return torch.cat([out[:, :1], x[:, 1:]], dim=1)")
OTHERS = {
    "it computes with rounded weights": QUANTISED + ATTEND.replace("nn.Linear(width", "RoundedLinear(width"),
    "it hands tokens on": CLASS_TOKEN,
    "it attends within buckets": ATTEND.replace(
        "        weights = F",
        "        buckets = (x.sum(-1) > 0)[:, None]\n        scores = scores + (buckets[..., None] == buckets[:, :, None])\n"
        "        weights = F",
    ),
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_attention_of_another_kind_gets_no_verdict_that_names_nothing(text, shared_engine):
    report = shared_engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "ungraded"
    assert "could not be read as mha" in report.ungraded_because


CHUNKED = ATTEND.replace("n_heads):", "n_heads, query_chunk_size=1024):").replace(
    "        out = self.w_o(",
    "        if T > self.chunk:\n            raise ValueError(f'{T} tokens')\n        out = self.w_o(",
)
CHUNKED = CHUNKED.replace("        self.h, self.d", "        self.chunk = query_chunk_size\n        self.h, self.d")


def test_the_size_of_a_chunk_stays_what_the_code_says():
    found = read(HEAD + CHUNKED, "mha")

    assert isinstance(found, Chosen)
    assert (found.mistakes, dict(found.reading.build)) == (0, {"width": "E", "n_heads": "H"})


SQUARE = (
    ATTEND.replace("x, mask=None", "query, key, value, mask=None")
    .replace("x.shape", "query.shape")
    .replace("(w(x).view(B", "(w(each).view(B")
    .replace("for w in (self.w_q, self.w_k, self.w_v))", "for w, each in each_own)")
    .replace(
        "        q, k, v", "        each_own = (self.w_q, query), (self.w_k, key), (self.w_v, value)\n        q, k, v"
    )
)


def test_the_length_of_the_queries_for_all_three_is_said_with_the_mistake_that_it_may_be(shared_engine):
    report = shared_engine.grade("qkv_attention", (HEAD + SQUARE).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "passed"
    assert any(
        "only as many queries as keys" in note and "context.query_length" in note for note in report.reading["notes"]
    )


QUERIES_AND_KEYS = ATTEND.replace(
    "self.w_q, self.w_k = nn.Linear(width, width), nn.Linear(width, width)", "self.to_qk = nn.Linear(width, 2 * width)"
).replace(
    "(w(x).view(B, T, self.h, -1).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))",
    "(one.view(B, T, self.h, -1).transpose(1, 2) for one in (*self.to_qk(x).chunk(2, dim=-1), self.w_v(x)))",
)


@pytest.mark.parametrize(("scale", "count"), [("self.d", 0), ("E", 1)])
def test_one_layer_for_queries_and_keys_is_read(scale, count):
    found = read(HEAD + QUERIES_AND_KEYS.replace("math.sqrt(self.d)", f"math.sqrt({scale})"), "mha")

    assert isinstance(found, Chosen)
    assert (found.mistakes, found.reading.fused) == (count, ("q", "k"))


OF_CONFIG = (
    ATTEND.replace("width, n_heads):", "config):")
    .replace(
        "        self.h, self.d",
        "        width, n_heads = config.hidden_size, config.num_heads\n        self.h, self.d",
    )
    .replace(
        "        out = self.w_o(",
        "        if self.config.pretraining_tp > 1:\n            raise NotImplementedError\n        out = self.w_o(",
    )
    .replace("super().__init__()", "super().__init__()\n        self.config = config")
)


def test_a_number_of_a_config_that_is_only_compared_is_one():
    found = read(HEAD + OF_CONFIG, "mha")

    assert isinstance(found, Chosen)
    assert (found.mistakes, dict(found.reading.build)["config.pretraining_tp"]) == (0, "1")


def test_a_reading_of_what_stays_on_the_processor_can_be_typed_back():
    on_gpu = "device = torch.device('cuda')\n" + ATTEND.replace(
        "        B, T, E = x.shape", "        x = x.to(device)\n        B, T, E = x.shape"
    )
    found = read(HEAD + on_gpu, "mha")
    again = read(HEAD + on_gpu, "mha", *found.reading.flags())

    assert found.reading.processor
    assert again.reading == found.reading


TRAINS_WHEN_IMPORTED = "def train():\n    while True:\n        torch.ones(3)\n\n\nlosses = train()\n"


def test_a_file_that_trains_when_it_is_imported_is_graded(shared_engine):
    text = (HEAD + TRAINS_WHEN_IMPORTED + ATTEND).encode()
    report = shared_engine.grade("mha", text, attempt="mine.py", reads=True)

    assert report.outcome == "passed", report.ungraded_because


@pytest.mark.parametrize(
    ("edits", "outcome"),
    [
        ([("def forward", "def forwward")], "failed"),
        ([("def forward", "def _forward")], "ungraded"),
        ([("def forward", "def forwward"), ("(nn.Module)", "(Base)")], "ungraded"),
    ],
    ids=["misspelt", "a name of its own", "of another base"],
)
def test_a_forward_that_is_misspelt_is_told(edits, outcome, shared_engine):
    text = HEAD + "from .base import Base\n" + ATTEND
    for old, new in edits:
        text = text.replace(old, new)
    report = shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True)

    assert report.outcome == outcome
    assert ("has no forward, and nothing calls its 'forwward'" in report.ungraded_because) == ("forwward" in text)


def test_a_config_at_module_level_serves_as_many_modules_as_a_grading_builds():
    """Each module finds the config that stood in for the file's own when the one before was built."""
    found: dict[str, Any] = {}
    exec(adapter._CONFIG, found)
    config: Any = SimpleNamespace(heads=8, width=512)
    for _ in range(3000):
        config = found["_Config"](_own=config, width=24)

    assert (config.width, config.heads) == (24, 8)


JOINS_WHAT_THE_CALLER_SPLITS = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads, self.d = n_heads, d_model // n_heads
        self.W_0 = nn.Linear(d_model, d_model)

    def forward(self, q, k, v):
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in (q, k, v))
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.W_0((weights @ v).transpose(1, 2).flatten(2))
"""


def test_heads_of_what_the_caller_projects_are_graded_and_said(shared_engine):
    right, wrong = (
        shared_engine.grade("qkv_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)
        for text in (JOINS_WHAT_THE_CALLER_SPLITS, JOINS_WHAT_THE_CALLER_SPLITS.replace(" / math.sqrt(self.d)", ""))
    )

    assert right.outcome == "passed", right.ungraded_because
    assert any(
        note.startswith("It has no layer for q, k and v, and takes the queries, ") for note in right.reading["notes"]
    )
    assert [mistake.id for one in wrong.diagnosis for mistake in one.mistakes] == ["scale.missing"]


def test_a_function_that_multiplies_by_keys_as_they_come_fails(shared_engine):
    text = "def attend(q, k, v):\n    return F.softmax(q @ k / math.sqrt(q.shape[-1]), dim=-1) @ v\n"
    report = shared_engine.grade("sdpa", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert report.outcome == "failed"


def test_a_definition_that_needs_too_much_memory_does_not_hide_the_other(shared_engine):
    wrong = ATTEND.replace(" / math.sqrt(self.d)", "")
    large = """
class WideAttention(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))
        self.table = torch.zeros(1 << 34).fill_(1.0)

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, self.d).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(self.d), dim=-1)
        return self.w_o((weights @ v).transpose(1, 2).reshape(B, T, E))
"""
    report = shared_engine.grade("mha", (HEAD + wrong + large).encode(), attempt="mine.py", reads=True)

    assert report.reading is not None, report.ungraded_because
    assert report.reading["entry"] == "SelfAttend"
    assert [mistake.id for one in report.diagnosis for mistake in one.mistakes] == ["scale.missing"]


NAMED_AS_TORCHS = """
def scaled_dot_product(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -9e15)
    weights = F.softmax(scores, dim=-1)
    return weights @ v, weights


class MultiheadAttention(nn.Module):
    def __init__(self, input_dim, embed_dim, num_heads):
        super().__init__()
        self.h, self.d = num_heads, embed_dim // num_heads
        self.qkv_proj = nn.Linear(input_dim, 3 * embed_dim)
        self.o_proj = nn.Linear(embed_dim, input_dim)

    def forward(self, x, mask=None):
        B, T, _ = x.shape
        q, k, v = self.qkv_proj(x).reshape(B, T, self.h, 3 * self.d).permute(0, 2, 1, 3).chunk(3, dim=-1)
        values, _ = scaled_dot_product(q, k, v, mask=mask)
        return self.o_proj(values.permute(0, 2, 1, 3).reshape(B, T, self.h * self.d))
"""


def test_a_class_with_the_name_of_torchs_attention_is_graded_and_not_the_function_that_it_uses(tmp_path):
    mine = tmp_path / "mine.py"
    merge = ".permute(0, 2, 1, 3).reshape(B, T, self.h"
    assert NAMED_AS_TORCHS.count(merge) == 1
    graded = []
    for text in (NAMED_AS_TORCHS, NAMED_AS_TORCHS.replace(merge, ".reshape(B, T, self.h")):
        mine.write_text(HEAD + text)
        graded.append(
            subprocess.run(
                [sys.executable, "-m", "attn_kata", "grade", mine], capture_output=True, text=True, check=False
            )
        )

    right, wrong = graded
    assert right.returncode == 0, right.stdout
    assert "MultiheadAttention" in right.stdout
    assert wrong.returncode == 1
    assert "(merge.no_transpose)" in wrong.stdout
