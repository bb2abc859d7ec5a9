"""Where no known mistake gives the numbers: how far the attempt is right, and which mistakes are certain all the same."""

from __future__ import annotations

import pytest
import torch

from attn_kata.diagnosis.departure import along_keys
from attn_kata.engine.client import Engine
from attn_kata.properties.results import Operand, RaisingOperation, Step, trace
from attn_kata.protocol import wire
from attn_kata.report.model import Report

PLAIN = """
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"{embed_dim} is no multiple of {num_heads}")
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))
        self.H, self.D, self.p = num_heads, embed_dim // num_heads, dropout

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q = self.q_proj(x).view(B, T, self.H, self.D).transpose(1, 2)
        k = self.k_proj(x).view(B, T, self.H, self.D).transpose(1, 2)
        v = self.v_proj(x).view(B, T, self.H, self.D).transpose(1, 2)
        scores = q @ k.transpose(-2, -1)
        scores = scores / math.sqrt(self.D)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        weights = nn.functional.dropout(weights, self.p, self.training)
        context = weights @ v
        together = context.transpose(1, 2).reshape(B, T, E)
        return self.o_proj(together)
"""
EACH_HEAD = PLAIN.replace(
    """        scores = q @ k.transpose(-2, -1)
        scores = scores / math.sqrt(self.D)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        weights = nn.functional.dropout(weights, self.p, self.training)
        context = weights @ v
        together = context.transpose(1, 2).reshape(B, T, E)
""",
    """        found = []
        keep = torch.ones(B, self.H, T, T, dtype=torch.bool, device=x.device) if mask is None else mask.expand(B, self.H, T, T)
        for head in range(self.H):
            scores = torch.einsum("bid,bjd->bij", q[:, head], k[:, head]) / math.sqrt(self.D)
            scores = scores.masked_fill(~keep[:, head], float("-inf"))
            weights = nn.functional.dropout(scores.softmax(dim=-1), self.p, self.training)
            found.append(weights @ v[:, head])
        together = torch.cat(found, dim=-1)
""",
)
SPLIT = "q = self.q_proj(x).view(B, T, self.H, self.D).transpose(1, 2)"
SCALE = "scores / math.sqrt(self.D)"
MASK = 'float("-inf")'
SOFTMAX = "weights = scores.softmax(dim=-1)"
MIX = "context = weights @ v"
MERGE = "context.transpose(1, 2).reshape(B, T, E)"
OUTPUT = "return self.o_proj(together)"
TWICE = "return self.o_proj(self.o_proj(together))"
SCORES = "scores = q @ k.transpose(-2, -1)"


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.split("\n"), 1) if part in line)


def graded(engine: Engine, text: str) -> Report:
    return engine.grade("mha", text.encode(), attempt="mha.py")


def named(report: Report) -> set[str]:
    return {mistake.id for one in report.diagnosis for mistake in one.mistakes}


@pytest.mark.parametrize("text", [PLAIN, EACH_HEAD], ids=["at once", "each head"])
def test_a_right_attempt_passes(shared_engine, text):
    report = graded(shared_engine, text)

    assert report.passed, [one.message for one in report.findings]


@pytest.mark.parametrize(
    ("edits", "right", "at", "wrong", "instead"),
    [
        (
            [(SCORES, "scores = q.sum(-1, True) @ k.sum(-1, True).mT")],
            "q, k and v are right",
            "v = self",
            "The scores",
            "k.sum",
        ),
        (
            [(SOFTMAX, "weights = torch.log1p(scores.exp())")],
            "q, k, v and the scores are right",
            "scores.masked_fill",
            "The weights",
            "log1p",
        ),
        (
            [(MIX, "context = weights @ v.cumsum(2)")],
            "q, k, v, the scores and the weights are right",
            "scores.softmax",
            "The context",
            "cumsum",
        ),
        (
            [("v = self.v_proj(x)", "v = self.v_proj(x.cumsum(1))")],
            "q, k, the scores and the weights are right",
            "scores.softmax",
            "v",
            "x.cumsum",
        ),
    ],
)
def test_it_says_how_far_an_attempt_with_an_unknown_mistake_is_right(shared_engine, edits, right, at, wrong, instead):
    text = edited(PLAIN, *edits)

    report = graded(shared_engine, text)

    assert report.outcome == "failed"
    assert not named(report)
    assert not report.explained
    said = report.notes[-1]
    assert f"(line {line_of(text, at)})" in said
    assert f"{wrong} {'are' if wrong.endswith('s') else 'is'} the first that" in said
    assert said.endswith(f"line {line_of(text, instead)}")


def test_a_mistake_behind_the_output_is_said(shared_engine):
    text = edited(PLAIN, (OUTPUT, TWICE))

    report = graded(shared_engine, text)

    assert report.notes[-1] == f"All is right up to the output (line {line_of(text, TWICE)}). What is returned is not"


def test_of_an_attempt_that_raises_it_says_what_it_does_not_reach(shared_engine):
    text = edited(PLAIN, (SCALE, "scores / math.sqrt(self.D) + torch.zeros(7, 11, 13)"))

    report = graded(shared_engine, text)

    v, here = line_of(text, "v = self"), line_of(text, "zeros(7, 11, 13)")
    assert report.notes[-1] == (
        f"q, k and v are right (line {v}). It ends before the scores are right: "
        f"line {here} calls add with the scores (B, H, T, T) and a tensor (7, 11, 13)"
    )


def test_scores_that_are_not_scaled_yet_name_no_scale(shared_engine):
    text = edited(PLAIN, (SCALE, "scores.view(B, T + 1, E)"))

    assert named(graded(shared_engine, text)) == {"layout.sizes"}


def test_a_scale_is_named_though_the_attempt_raises_later(shared_engine):
    text = edited(PLAIN, (SCALE, "scores / math.sqrt(E)"), (MERGE, "context.view(B, T + 1, E)"))

    assert named(graded(shared_engine, text)) == {"scale.embed_dim", "layout.sizes"}


def test_of_an_attempt_that_returns_no_tensor_it_says_how_far_it_came(shared_engine):
    text = edited(PLAIN, (OUTPUT, "self.o_proj(together)"))

    report = graded(shared_engine, text)

    line = line_of(text, "self.o_proj(together)")
    assert report.notes[-1] == f"All is right up to the output (line {line}). It gives no tensor"


@pytest.mark.parametrize(
    ("text", "edit", "id", "part"),
    [
        (PLAIN, (SCALE, "scores / math.sqrt(B + 1)"), "scale.other", "B + 1"),
        (PLAIN, (SCALE, "scores * 0.3"), "scale.other", "0.3"),
        (EACH_HEAD, ("/ math.sqrt(self.D)", "/ (self.H + 0.5)"), "scale.other", "self.H + 0.5"),
    ],
)
def test_another_scale_is_named_with_its_line(shared_engine, text, edit, id, part):
    text = edited(text, edit)

    report = graded(shared_engine, text)

    assert [[mistake.id for mistake in one.mistakes] for one in report.diagnosis] == [[id]]
    assert report.diagnosis[0].mistakes[0].line == line_of(text, part)
    assert report.explained


@pytest.mark.parametrize(
    ("scale", "ids"),
    [
        ("scores / E", {"scale.embed_dim", "scale.no_sqrt"}),
        ("scores * E", {"scale.embed_dim", "scale.inverted"}),
        ("scores / self.H", {"scale.heads", "scale.no_sqrt"}),
        ("scores * math.sqrt(T)", {"scale.key_length", "scale.inverted"}),
    ],
)
def test_two_mistakes_in_one_scale_are_both_named(shared_engine, scale, ids):
    text = edited(PLAIN, (SCALE, scale))

    report = graded(shared_engine, text)

    assert [{mistake.id for mistake in one.mistakes} for one in report.diagnosis] == [ids]
    assert {mistake.line for mistake in report.diagnosis[0].mistakes} == {line_of(text, scale)}
    assert report.explained


@pytest.mark.parametrize(
    ("edits", "id"),
    [
        ([(SCALE, "scores / math.sqrt(E)")], "scale.embed_dim"),
        ([(SCALE, "scores / math.sqrt(B + 1)")], "scale.other"),
        ([(SOFTMAX, "weights = scores.softmax(dim=-2)")], "softmax.query_axis"),
        ([(MASK, "0.0")], "mask.zero_fill"),
        ([("~mask, ", "mask, ")], "mask.inverted"),
        ([(SPLIT, "q = self.q_proj(x).view(B, self.H, T, self.D)")], "split.no_transpose"),
    ],
)
@pytest.mark.parametrize(
    "unknown", [(OUTPUT, TWICE), (MIX, "context = weights @ v.cumsum(2)")], ids=["output", "values"]
)
def test_a_known_mistake_beside_an_unknown_one_is_named(shared_engine, edits, id, unknown):
    report = graded(shared_engine, edited(PLAIN, *edits, unknown))

    assert named(report) == {id}
    assert not report.explained  # and the report says that there is more
    assert report.notes[-1].startswith("apart from what is named, ")


def test_two_known_mistakes_beside_an_unknown_one_are_named(shared_engine):
    report = graded(
        shared_engine,
        edited(PLAIN, (SCALE, "scores / self.D"), (SOFTMAX, "weights = scores.softmax(dim=1)"), (OUTPUT, TWICE)),
    )

    assert named(report) == {"scale.no_sqrt", "softmax.head_axis"}


def test_a_scale_is_seen_through_a_mask_that_is_wrong_too(shared_engine):
    report = graded(
        shared_engine,
        edited(PLAIN, (SCALE, "scores / math.sqrt(E)"), (MASK, "1e-9"), (MIX, "context = weights @ v.cumsum(2)")),
    )

    assert named(report) == {"scale.embed_dim", "mask.zero_fill"}
    assert not report.explained


@pytest.mark.parametrize("scaled", ["scores * 0", "scores.new_zeros(scores.shape)", "scores.cos()"])
def test_scores_of_which_nothing_is_left_name_no_scale(shared_engine, scaled):
    assert named(graded(shared_engine, edited(PLAIN, (SCALE, scaled)))) == set()


def test_scores_that_are_scaled_and_then_moved_name_no_scale(shared_engine):
    report = graded(shared_engine, edited(PLAIN, ("k.transpose(-2, -1)", "k.roll(1, 2).transpose(-2, -1)")))

    assert named(report) == set()


def test_of_what_is_never_made_no_layer_is_named(shared_engine):
    text = edited(PLAIN, ("        v = self.v_proj(x)", "        k = k.view(B, T + 1, E)\n        v = self.v_proj(x)"))

    assert named(graded(shared_engine, text)) == {"layout.sizes"}


def test_a_result_that_nothing_uses_is_named_with_its_line(shared_engine):
    text = edited(PLAIN, (MIX, "context = weights @ v.cumsum(2)\n        context.flatten(2)"))

    report = graded(shared_engine, text)

    assert named(report) == {"python.unused_result"}
    assert report.diagnosis[0].mistakes[0].line == line_of(text, "context.flatten(2)")


def test_a_mask_that_is_filled_in_and_dropped_is_named_as_lost(shared_engine):
    text = edited(
        PLAIN, (MIX, "context = weights @ v.cumsum(2)"), ("scores = scores.masked_fill", "scores.masked_fill")
    )

    report = graded(shared_engine, text)

    assert named(report) == {"mask.lost"}
    assert report.diagnosis[0].mistakes[0].line == line_of(text, "scores.masked_fill")


def test_what_other_mistakes_explain_leaves_no_result_to_be_named(shared_engine):
    text = edited(PLAIN, (SCALE, "scores / math.sqrt(E)\n        scores.flatten(2)"))

    assert named(graded(shared_engine, text)) == {"scale.embed_dim"}


def test_two_mistakes_in_the_inputs_are_named_beside_an_unknown_one(shared_engine):
    report = graded(shared_engine, edited(PLAIN, *AS_IT_LIES, ("self.v_proj(x)", "self.k_proj(x)"), (OUTPUT, TWICE)))

    assert named(report) == {"split.no_transpose", "project.key_for_value"}
    assert not report.explained


def test_two_mistakes_in_the_weights_of_heads_in_a_loop_are_named_beside_an_unknown_one(shared_engine):
    text = edited(
        EACH_HEAD,
        ("scores = scores.masked_fill(~keep", "scores.masked_fill(~keep"),
        ("scores.softmax(dim=-1)", "scores.softmax(dim=-2)"),
        (OUTPUT, TWICE),
    )

    report = graded(shared_engine, text)

    assert named(report) == {"mask.lost", "softmax.query_axis"}


AS_IT_LIES = [
    (f"self.{one}_proj(x).view(B, T, self.H, self.D).transpose(1, 2)", f"self.{one}_proj(x).view(B, self.H, T, self.D)")
    for one in "qkv"
]
KEYS_VIEWED = ("k.transpose(-2, -1)", "k.reshape(B, self.H, self.D, T)")


def test_four_mistakes_are_named_one_after_the_other(shared_engine):
    text = edited(
        PLAIN, *AS_IT_LIES, KEYS_VIEWED, (SCALE, "scores / math.sqrt(E)"), (MERGE, "context.reshape(B, T, E)")
    )

    report = graded(shared_engine, text)

    assert named(report) == {"split.no_transpose", "score.reshaped", "scale.embed_dim", "merge.no_transpose"}
    assert report.explained


def test_a_split_is_named_beside_scores_that_nothing_explains(shared_engine):
    report = graded(
        shared_engine, edited(PLAIN, *AS_IT_LIES, ("k.transpose(-2, -1)", "k.roll(1, 2).transpose(-2, -1)"))
    )

    assert named(report) == {"split.no_transpose"}
    assert not report.explained


@pytest.mark.parametrize(
    ("edits", "ids"),
    [
        (
            [("q = self.q_proj(x)", "q = self.v_proj(x)"), (SCALE, "scores / 7")],
            {"project.value_for_query", "scale.other"},
        ),
        ([("k = self.k_proj(x)", "k = self.q_proj(x)"), (OUTPUT, TWICE)], {"project.query_for_key"}),
    ],
)
def test_which_layer_makes_what_is_named_beside_another_mistake(shared_engine, edits, ids):
    assert named(graded(shared_engine, edited(PLAIN, *edits))) == ids


def test_what_is_read_from_a_forged_reply_is_no_more_than_its_numbers():
    def reply(*texts: str) -> wire.Reply:
        part = wire.TensorReply(
            shape=(6,), dtype=torch.float64, device=wire.CPU, shares_input=False, data=torch.arange(6.0).double()
        )
        return wire.Reply(status=wire.OK, texts=texts, tensors=(part,))

    def steps_of(one: wire.Reply) -> list[Step]:
        return trace(one).steps

    assert [step.value.shape for step in steps_of(reply("3 add 2,2 -", "4 mul 2 0"))] == [(2, 2), (2,)]
    assert steps_of(reply("3 add 7 -")) == []
    assert steps_of(reply("3 add 99999999999 -")) == []
    assert steps_of(reply("three add 2 -")) == []
    assert steps_of(reply("3 add 2 0")) == []  # it cannot be made of itself
    assert [step.line for step in steps_of(reply("3 add 2 -", "nonsense", "4 add 2 -"))] == [3]

    raising = trace(reply("3 add 2,2 -", "4 matmul raises 0:2,2 -:5,2,2")).raising
    assert raising == RaisingOperation(
        line=4, operation="matmul", operands=(Operand(shape=(2, 2), source=0), Operand(shape=(5, 2, 2), source=None))
    )
    assert trace(reply("4 \x1b[31m raises -:2")).raising is None
    assert trace(reply("4 matmul raises 0:2")).raising is None  # there is no step 0
    assert trace(reply("4 matmul raises -:" + "2," * 99)).raising is None


def test_a_line_that_the_source_does_not_have_is_not_said(shared_engine):
    forged = """
import torch.overrides
plain = torch.overrides.TorchFunctionMode.__enter__
def forge(self):
    if type(self).__name__ == "Tracer":
        type(self)._line = lambda self: 4242
    return plain(self)
torch.overrides.TorchFunctionMode.__enter__ = forge
"""
    wrong = edited(PLAIN, (MIX, "context = weights @ v.cumsum(2)"))
    report = graded(shared_engine, forged + wrong)

    assert report.outcome == "failed"
    assert "4242" not in " ".join(report.notes)
    assert report.notes == ["no known mistake gives these numbers; look at the properties that fail"]


def test_weights_are_told_apart_though_every_row_has_the_same_sum():
    torch.manual_seed(0)
    weights = torch.rand(2, 3, 5, 4, dtype=torch.float64).softmax(-1)
    milestone = along_keys("the weights", weights)

    assert milestone.is_it((weights.permute(1, 0, 3, 2),))
    assert milestone.is_it((weights.flatten(0, 1),))
    assert not milestone.is_it((weights.roll(1, -1),))
    assert not milestone.is_it((weights.flip(-1),))
