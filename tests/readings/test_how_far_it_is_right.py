"""Code by other names with a mistake that nobody knows: how far it is right is said, and decides what can be judged."""

from __future__ import annotations

import pytest
from tests.readings.pairs import told
from tests.readings.test_kinds import HEAD

from attn_kata.engine.client import Engine
from attn_kata.report.model import Report

ATTEND = """
class Attend(nn.Module):
    def __init__(self, width, n_heads):
        super().__init__()
        self.h, self.d = n_heads, width // n_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        B, T, E = x.shape
        q, k, v = (w(x).view(B, T, self.h, self.d).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        scores = q @ k.transpose(-2, -1)
        scores = scores / self.d**0.5
        weights = scores.softmax(dim=-1)
        context = weights @ v
        return self.w_o(context.transpose(1, 2).reshape(B, T, E))
"""
SPLIT = "w(x).view(B, T, self.h, self.d).transpose(1, 2)"
MERGE = "context.transpose(1, 2).reshape(B, T, E)"
SCALE = "scores / self.d**0.5"
SOFTMAX = "weights = scores.softmax(dim=-1)"
MIX = "context = weights @ v"
OUTPUT = "return self.w_o("
TWICE = "return self.w_o(self.w_o(context.transpose(1, 2).reshape(B, T, E))) if B else ("


def graded(engine: Engine, *edits: tuple[str, str]) -> Report:
    text = ATTEND
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return engine.grade("mha", (HEAD + text).encode(), attempt="mine.py", reads=True)


def test_the_code_is_right(shared_engine):
    assert graded(shared_engine).passed


@pytest.mark.parametrize(
    "edit",
    [
        (MIX, "context = weights @ v.flip(2).cumsum(2)"),
        (MIX, "context = weights @ v.cumsum(2)"),
    ],
)
def test_code_whose_weights_are_right_is_read_right_and_fails(shared_engine, edit):
    report = graded(shared_engine, edit)

    assert report.outcome == "failed"
    assert any("The context is the first that is wrong" in note for note in report.notes), report.notes


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ((SCALE, SCALE + " - torch.arange(T) / 9"), "the scores are right"),  # as positions inside have it
        (
            (SOFTMAX, "scores = scores - torch.arange(T) / 9\n        " + SOFTMAX),
            "The weights are the first that are wrong",
        ),
        ((SOFTMAX, SOFTMAX + "\n        weights = weights**2"), "q, k, v, the scores and the weights are right"),
        ((OUTPUT, TWICE), "All is right up to the output"),  # as what follows an attention in a block
    ],
)
def test_where_it_may_be_another_kind_it_is_not_judged_and_how_far_it_is_right_is_said(shared_engine, edit, said):
    report = graded(shared_engine, edit)

    assert report.outcome == "ungraded"
    assert said in (report.ungraded_because or "")
    assert "--read KEY=VALUE" in (report.ungraded_because or "")


@pytest.mark.parametrize(
    ("edits", "id"),
    [
        ([(SCALE, "scores / (T + 1) ** 0.5")], "scale.other"),
        ([(SCALE, "scores / E**0.5"), (OUTPUT, TWICE)], "scale.embed_dim"),
        ([(SOFTMAX, "weights = scores.softmax(dim=-2)"), (OUTPUT, TWICE)], "softmax.query_axis"),
    ],
)
def test_a_mistake_that_is_certain_is_named(shared_engine, edits, id):
    report = graded(shared_engine, *edits)

    assert told(report) == {id}, report.ungraded_because


def test_a_split_that_is_certain_is_named_though_every_call_raises(shared_engine):
    report = graded(shared_engine, (SPLIT, "w(x).view(B, self.h, T, self.d)"), (MERGE, "context.view(B, T + 1, E)"))

    assert told(report) == {"split.no_transpose"}, report.ungraded_because
    assert any("It ends before the merged heads are right" in note for note in report.notes)


def test_four_mistakes_are_named_one_after_the_other(shared_engine):
    report = graded(
        shared_engine,
        (SPLIT, "w(x).view(B, self.h, T, self.d)"),
        ("k.transpose(-2, -1)", "k.view(B, self.h, self.d, T)"),
        (SCALE, "scores / E**0.5"),
        (MERGE, "context.view(B, T, E)"),
    )

    assert told(report) == {"split.no_transpose", "score.reshaped", "scale.embed_dim", "merge.no_transpose"}


def test_what_raises_after_right_weights_fails(shared_engine):
    report = graded(shared_engine, (MERGE, "context.view(B, T + 1, E)"))

    assert report.outcome == "failed"
    assert not told(report)
    assert any("weights and the context are right (line" in note for note in report.notes), report.notes


def test_what_raises_before_its_weights_is_not_judged(shared_engine):
    report = graded(shared_engine, (SCALE, "scores.view(B, T + 1, E)"))

    assert report.outcome == "ungraded"


OF_SELF = "for w in (self.w_q, self.w_k, self.w_v))"
OF_EACH = "for w, one in zip((self.w_q, self.w_k, self.w_v), (query, key, value)))\n        k, v = v, k"
OF_THREE = (
    ATTEND.replace("forward(self, x)", "forward(self, query, key, value, mask=None)")
    .replace("x.shape", "query.shape")
    .replace("w(x).view(B, T,", "w(one).view(B, -1,")
    .replace(OF_SELF, OF_EACH)
)
OF_THREE = OF_THREE.replace(
    "        weights =",
    "        scores = scores if mask is None else scores.masked_fill(mask == 0, -1e9)\n        weights =",
)


def test_layers_by_name_in_another_order_are_named_beside_a_result_of_another_shape(shared_engine):
    text = OF_THREE.replace(f"self.w_o({MERGE})", f"self.w_o({MERGE})[:, None]")
    assert text.count("[:, None]") == text.count("k, v = v, k") == 1

    report = shared_engine.grade("qkv_attention", (HEAD + text).encode(), attempt="mine.py", reads=True)

    assert told(report) == {"project.exchanged"}, report.ungraded_because
    assert any("apart from what is named, all is right up to the output" in note for note in report.notes)
