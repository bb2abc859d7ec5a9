"""One edit in one place of a right attempt: the mistakes that people make while typing, and their names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from attn_kata import catalog
from attn_kata.authoring.workbench import Workbench
from attn_kata.report.model import NamedMistake, Report


@pytest.fixture(scope="module")
def workbench() -> Iterator[Workbench]:
    with Workbench() as bench:
        yield bench


def graded(workbench: Workbench, slug: str, file: str, old: str, new: str) -> Report:
    """The report on an attempt of the kata, or its reference, in which `old` is `new`, wherever it is."""
    kata = catalog.find(slug)
    path = kata.solution if file == "solution" else kata.folder / "right" / f"{file}.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    report = workbench.grade(slug, text.replace(old, new).encode(), attempt="attempt.py")
    assert report is not None
    return report


def named(report: Report) -> list[NamedMistake]:
    (one,) = report.diagnosis
    return one.mistakes


@pytest.mark.parametrize("slug", ["sdpa", "mha", "cross_attention", "qkv_attention", "gqa", "transformer_block"])
@pytest.mark.parametrize(
    ("old", "new"), [("scores = q @ k.t", "scores = k @ k.t"), ("scores = q @ k.t", "scores = q @ q.t")]
)
def test_scores_of_one_tensor_are_named_with_their_line(workbench, slug, old, new):
    report = graded(workbench, slug, "plain", old, new)

    (mistake,) = named(report)
    assert report.outcome == "failed"
    assert mistake.id == "score.same_tensor"
    assert mistake.source_line is not None
    assert new in mistake.source_line


def test_a_layer_that_makes_two_of_three_is_not_called_a_product_of_one_tensor(workbench):
    (mistake,) = named(graded(workbench, "mha", "plain", "k = self.k_proj(x)", "k = self.q_proj(x)"))

    assert mistake.id == "project.query_for_key"


@pytest.mark.parametrize(
    ("slug", "old", "new"),
    [
        ("padding_mask", "math.sqrt(q.size(-1))", "math.sqrt(q.size(0))"),
        ("combined_mask", "math.sqrt(q.size(-1))", "math.sqrt(q.size(0))"),
        ("sdpa", "math.sqrt(q.shape[-1])", "math.sqrt(11)"),
    ],
)
def test_another_scale_is_named_where_queries_and_keys_are_given(workbench, slug, old, new):
    (mistake,) = named(graded(workbench, slug, "plain", old, new))

    assert mistake.id == "scale.other"
    assert mistake.source_line is not None
    assert new in mistake.source_line


@pytest.mark.parametrize(
    ("slug", "hidden"),
    [("padding_mask", "padded"), ("additive_attention", "hidden"), ("multiplicative_attention", "hidden")],
)
def test_a_second_mask_on_the_weights_does_not_hide_a_fill_of_0(workbench, slug, hidden):
    old, new = f"masked_fill({hidden}, torch.finfo(scores.dtype).min)", f"masked_fill({hidden}, 0.0)"
    report = graded(workbench, slug, "solution", old, new)

    assert report.outcome == "failed"
    assert [one.id for one in named(report)] == ["mask.zero_fill"]


@pytest.mark.parametrize(
    ("old", "new", "id"),
    [
        ("cut.transpose(1, 2)", "cut.transpose(1, 3)", "split.order"),
        ("cut.transpose(1, 2)", "cut.transpose(0, 2)", "split.order"),
        (".transpose(1, 2).flatten(-2)", ".flatten(-2)", "merge.order"),
        (".transpose(1, 2).flatten(-2)", ".transpose(0, 2).flatten(-2)", "merge.order"),
        (".transpose(1, 2).flatten(-2)", ".transpose(1, 2).flatten(1, 2)", "merge.order"),
    ],
)
def test_every_order_of_dimensions_is_named(workbench, old, new, id):
    assert [one.id for one in named(graded(workbench, "split_heads", "solution", old, new))] == [id]


@pytest.mark.parametrize(
    ("old", "new", "id"),
    [
        (">= p", "<= p", "dropout.keep_probability"),
        ("weights * kept / (1 - p)", "weights * kept * (1 - p)", "dropout.not_rescaled"),
    ],
)
def test_dropout_by_hand(workbench, old, new, id):
    assert [one.id for one in named(graded(workbench, "attention_dropout", "solution", old, new))] == [id]


@pytest.mark.parametrize(
    ("slug", "result"), [("sdpa", "weights @ v"), ("padding_mask", "torch.softmax(scores, dim=-1) @ v")]
)
def test_weights_that_are_returned_are_named(workbench, slug, result):
    edited = graded(workbench, slug, "plain", f"return {result}", f"return {result.removesuffix(' @ v')}")

    assert [one.id for one in named(edited)] == ["output.weights"]
