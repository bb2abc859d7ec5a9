"""What a report says of its diagnosis: what it explains, what it does not, and what was looked for."""

from __future__ import annotations

from attn_kata import catalog, specimens
from attn_kata.engine.client import Engine
from attn_kata.report.model import Report
from attn_kata.report.summary import diagnosis_lead


def graded(engine: Engine, *edits: tuple[str, str], kata: str = "mha") -> Report:
    """The plain right attempt at the kata, with edits."""
    source = specimens.find(catalog.find(kata).folder, "right/plain").source()
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return engine.grade(kata, source.encode(), attempt=f"{kata}.py")


def named(report: Report) -> list[str]:
    return [mistake.id for found in report.diagnosis for mistake in found.mistakes]


def test_an_exception_beside_a_mistake_is_said_not_to_be_explained_by_it(engine: Engine) -> None:
    report = graded(
        engine, ("math.sqrt(self.head_dim)", "math.sqrt(E)"), ("B, T, E = x.shape", "B, T, E = x.shape; assert T < 9")
    )

    assert named(report) == ["scale.embed_dim"]
    assert report.unexplained
    assert "Something else breaks" in diagnosis_lead(report)


def test_a_mistake_alone_explains_what_fails(engine: Engine) -> None:
    report = graded(engine, ("math.sqrt(self.head_dim)", "math.sqrt(E)"))

    assert (report.unexplained, report.reproduced) == ([], True)
    assert diagnosis_lead(report) == "This mistake gives exactly the numbers of your code:"


def test_a_mistake_that_changes_the_shape_explains_the_shape(engine: Engine) -> None:
    averaged = ("return self.o_proj(out), weights", "return self.o_proj(out), weights.mean(1)")
    report = graded(engine, averaged, kata="qkv_attention")

    assert (named(report), report.unexplained) == (["weights.averaged"], [])


def test_a_cache_is_drawn_as_what_new_tokens_see_of_it(engine: Engine) -> None:
    report = graded(engine, ("diagonal=Tk - T", "diagonal=0"), kata="kv_cache")

    assert named(report) == ["cache.top_left"]
    (picture,) = report.pictures
    seen = [[bool(weight and weight > 1e-9) for weight in row] for row in picture.got]
    may = [[bool(weight and weight > 1e-9) for weight in row] for row in picture.expected]
    assert seen == [[key <= token for key in range(6)] for token in range(3)]
    assert may == [[key <= 3 + token for key in range(6)] for token in range(3)]


def test_a_mistake_that_raises_is_seen_and_gives_no_numbers(engine: Engine) -> None:
    report = graded(engine, (".reshape(B, T, E)", ".view(B, T, E)"))

    assert named(report) == ["layout.view_of_strided"]
    assert diagnosis_lead(report) == "This mistake was seen in your code:"


def test_a_plain_exception_is_not_said_to_be_no_known_mistake(engine: Engine) -> None:
    report = graded(engine, ("if mask is not None:", "if [mask][mask is None] is not None:"))

    assert report.diagnosis == []
    assert [note.partition(" (")[0] for note in report.notes] == ["q, k, v and the scores are right"]


def test_right_values_with_another_failure_say_what_was_looked_for(engine: Engine) -> None:
    half = "nn.functional.dropout(weights, self.dropout.p / 2, self.training)"
    report = graded(engine, ("self.dropout(weights)", half))

    assert report.diagnosis == []
    assert report.notes == [
        "the values are right; no known mistake that breaks dropout_acts_on_weights was seen in the code"
    ]


def test_a_pass_says_why_an_edge_property_fails(engine: Engine) -> None:
    report = graded(engine, ('float("-inf")', "-1e4"))

    assert report.passed
    assert report.diagnosis == []
    assert report.notes == [
        "empty_rows: A query with no keys left does not get 0 (mask.empty_row)",
        "large_scores: A fill value that large scores are below (numerics.small_fill), line 28",
    ]


def test_a_shape_beside_a_mistake_of_value_has_its_own_name(engine: Engine) -> None:
    lost = ("scores = scores.masked_fill", "scores.masked_fill")
    report = graded(engine, lost, (".reshape(B, T, E)", ".reshape(B, T, E).squeeze()"))

    assert {finding.property for finding in report.findings if finding.outcome == "failed"} == {"output_shape"}
    assert named(report) == ["layout.squeeze", "mask.lost"]


def test_other_parameters_are_not_said_to_give_no_known_numbers(engine: Engine) -> None:
    report = graded(engine, ("= nn.Dropout(dropout)", "= nn.Dropout(dropout); self.extra = nn.Linear(2, 2)"))

    assert [finding.property for finding in report.findings if finding.outcome == "failed"] == ["parameters"]
    assert report.notes == []


def test_what_is_drawn_of_no_weights_is_not_called_weights(engine: Engine) -> None:
    report = graded(engine, ("weights = torch.softmax(scores, dim=-1)", "weights = torch.tanh(scores) * 3"))

    assert [picture.what for picture in report.pictures if picture.columns == "key"] == ["what reaches the output"]
