"""An attempt that raises about shapes: the note says what the line was given, in letters, and the mistake has a name."""

from __future__ import annotations

import pytest

from attn_kata import catalog
from attn_kata.diagnosis.departure import Traced
from attn_kata.diagnosis.pipeline import Pipeline, State
from attn_kata.diagnosis.probing import ProbeResults
from attn_kata.diagnosis.raising import endings
from attn_kata.diagnosis.search import Answer
from attn_kata.engine.client import Engine
from attn_kata.properties.results import Operand, RaisingOperation
from attn_kata.report.model import Report


def graded(engine: Engine, slug: str, old: str, new: str) -> Report:
    """The report on the plain right attempt at a kata with one edit."""
    text = (catalog.find(slug).folder / "right" / "plain.py").read_text()
    assert text.count(old) == 1, old
    return engine.grade(slug, text.replace(old, new).encode(), attempt="attempt.py")


def named(report: Report) -> list[set[str]]:
    return [{mistake.id for mistake in each.mistakes} for each in report.diagnosis]


K = "k = self.k_proj(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)"
Q = K.replace("k", "q")
V = K.replace("k", "v")
MERGE = "(weights @ v).transpose(1, 2).reshape(B, T, E)"


SPLIT_K = (K, K.replace("(1, 2)", "(1, 3)"))
UNSPLIT_K = (K, K.replace(".transpose(1, 2)", ""))
SPLIT_Q = (Q, Q.replace("(1, 2)", "(2, 2)"))
SPLIT_V = (V, V.replace(".transpose(1, 2)", ""))
SIZES = (MERGE, MERGE.replace("E)", "T)"))
EXCHANGED = (MERGE, MERGE.replace("weights @ v", "v @ weights"))
UNMERGED = (MERGE, "weights @ v")
UNFLATTENED = (MERGE, MERGE.replace(".reshape(B, T, E)", ".unflatten(1, (2, 7)).reshape(B, T, E)"))
MERGED_WRONG = (MERGE, "(weights @ v).transpose(1, 3).flatten(2)")
THIRD = (MERGE, MERGE.replace("(1, 2)", "(1, 4)"))
TWICE = (MERGE, MERGE.replace("transpose(1, 2)", "permute(0, 2, 1, 1)"))
ADDED = ("if mask is not None:", "scores = scores + v\n        if mask is not None:")
KEYS = ("k.transpose(-2, -1)", "k.transpose(-3, -1)")
CONTEXT = ("self.q_proj(x)", "self.q_proj(context)")


@pytest.mark.parametrize(
    ("slug", "edit", "id", "said"),
    [
        ("mha", SPLIT_K, "score.wrong_transpose", "multiplies q (B, H, T, D) by k (B, D, T, H)"),
        ("mha", UNSPLIT_K, "split.order", "multiplies q (B, H, T, D) by k (B, T, D, H)"),
        ("mha", SPLIT_Q, "split.order", "multiplies q (B, T, H, D) by k (B, H, D, T)"),
        ("mha", SPLIT_V, "split.order", "multiplies the weights (B, H, T, T) by v (B, T, H, D)"),
        ("mha", SIZES, "layout.sizes", "calls reshape with the context (B, T, H, D)"),
        ("mha", EXCHANGED, "layout.product", "multiplies v (B, H, T, D) by the weights (B, H, T, T)"),
        ("mha", UNMERGED, "merge.order", "calls linear with the context (B, H, T, D)"),
        ("mha", UNFLATTENED, "layout.sizes", "calls unflatten with the context (B, T, H, D)"),
        ("mha", MERGED_WRONG, "layout.product", "calls linear with a tensor (2, 4, 15)"),
        ("mha", THIRD, "python.arguments", "calls transpose with the context (B, H, T, D)"),
        ("mha", TWICE, "python.arguments", "calls permute with the context (B, H, T, D)"),
        ("mha", ADDED, "layout.broadcast", "calls add with the scores (B, H, T, T) and v (B, H, T, D)"),
        ("sdpa", KEYS, "score.wrong_transpose", "multiplies q (B, H, Tq, D) by k (B, D, Tk, H)"),
        ("cross_attention", CONTEXT, "layout.product", "calls linear with the context that is given (B, Tk, E)"),
    ],
)
def test_what_does_not_fit_is_said_and_named(shared_engine, slug, edit, id, said):
    report = graded(shared_engine, slug, *edit)

    assert report.outcome == "failed"
    assert named(report) == [{id}]
    assert said in report.notes[-1]


def test_the_line_of_the_mistake_is_the_one_that_raises(shared_engine):
    report = graded(shared_engine, "mha", *SIZES)

    (mistake,) = report.diagnosis[0].mistakes
    assert mistake.source_line is not None
    assert ".reshape(B, T, T)" in mistake.source_line


def test_a_product_that_raises_with_every_layout_is_named_by_its_operands(shared_engine):
    report = graded(shared_engine, "heads_concat", "q @ k.transpose(-2, -1)", "q @ k.transpose(-1, -1)")

    assert named(report) == [{"score.not_transposed"}]
    assert "multiplies q (B, T, D) by k (B, T, D)" in report.notes[-1]


def test_a_known_mistake_keeps_its_name(shared_engine):
    report = graded(shared_engine, "mha", MERGE, "(weights @ v).transpose(1, 2).view(B, T, E)")

    assert named(report) == [{"layout.view_of_strided"}]


def test_an_exception_about_something_else_has_no_such_name(shared_engine):
    report = graded(shared_engine, "mha", MERGE, "(weights @ v.long()).transpose(1, 2).reshape(B, T, E)")

    assert report.outcome == "failed"
    assert not any(id.startswith("layout.") for ids in named(report) for id in ids)
    assert not any("multiplies" in note for note in report.notes)


def test_where_the_computation_beside_it_raises_no_tensor_has_a_name():
    def raises(state: State) -> None:
        raise RuntimeError("a mistake of this pipeline's own")

    pipeline = Pipeline(entry="attend", begin=lambda: State(), stages={"score": raises}, variants=(), probes=list)
    asked = ProbeResults(
        sizes={}, begun=[State()], answers=[Answer(output=None, raised="shape '[2]' is invalid for input of size 3")]
    )
    view = RaisingOperation(line=3, operation="view", operands=(Operand(shape=(3,), source=None),))

    (ending,) = endings(pipeline, asked, [Traced(steps=[], departure=None, raising=view)])

    assert str(ending) == "line 3 calls view with a tensor (3)"
    assert ending.mistake == "layout.sizes"
