"""The score: what named mistakes take, or the share of the groups that hold, always with its sum."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from attn_kata import catalog
from attn_kata.errors import UsageError
from attn_kata.report import rubric, score
from attn_kata.report.model import Diagnosis, Report

IDS = ("scale.missing", "mask.inverted", "mask.lost")


def rubric_of(tmp_path: Path, text: str) -> rubric.Rubric:
    file = tmp_path / "rubric.toml"
    file.write_text(text)
    return rubric.load(file, IDS)


def test_every_score_is_the_sum_of_its_terms_and_from_0_to_100(any_report: Report) -> None:
    found = score.of(any_report)

    assert found.points == pytest.approx(sum(term.points for term in found.terms))
    assert 0 <= found.points <= 100
    assert found.lines()[-1] == f"= {score.shown(found.points)} of 100"


def test_a_mistake_counts_once_however_many_properties_it_breaks(reports: dict[str, Report], tmp_path: Path) -> None:
    failed = reports["failed"]  # one of three core properties holds
    own = rubric_of(tmp_path, "[mistakes]\nscale = 20\n")
    exact = rubric_of(tmp_path, "[mistakes]\nscale = 20\nmask.inverted = 5\n'scale.missing' = 30\n")
    (found,) = failed.diagnosis
    ties = [Diagnosis(mistakes=[*found.mistakes, *found.mistakes]), found]
    tied = dataclasses.replace(failed, diagnosis=ties)
    many = dataclasses.replace(failed, diagnosis=[Diagnosis(mistakes=found.mistakes * 9)])

    assert score.of(failed).lines() == ["+100  everything", "−15  Scores not scaled (scale.missing)", "= 85 of 100"]
    assert score.of(failed, own).points == 80
    assert score.of(failed, exact).points == 70
    assert score.of(tied).points == 85, "of several explanations, the one that takes least"
    assert score.of(many).points == 0


def test_what_is_not_explained_is_scored_by_groups(reports: dict[str, Report], tmp_path: Path) -> None:
    unexplained = dataclasses.replace(reports["failed"], unexplained=["mask"])
    own = rubric_of(tmp_path, "[groups.shapes]\nweight = 3\n[groups.mine]\nweight = 2\nproperties = ['float32']\n")

    assert score.of(unexplained).lines() == [
        "+0  dtype and device: 0 of 1 properties hold",
        "+25  shapes: holds",
        "+0  masks: 0 of 1 properties hold",
        "+0  values: 0 of 1 properties hold",
        "= 25 of 100",
    ]
    assert score.of(unexplained, own).points == pytest.approx(42.9), "3 of 7: a new group goes before the others"
    assert score.of(dataclasses.replace(reports["failed"], explained=False)).points == 25


def test_ready_made_is_a_rule_of_its_own(reports: dict[str, Report], tmp_path: Path) -> None:
    failed = reports["failed"]
    called = dataclasses.replace(failed.findings[1], message="calls torch.x, which is ready-made")
    report = dataclasses.replace(failed, findings=[called])

    assert score.of(report).points == 0
    assert score.of(report, rubric_of(tmp_path, "[ready_made]\nscore = 40\n")).points == 40
    assert [score.of(reports[name]).points for name in ("passed", "ungraded", "not written")] == [100, 0, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[mistakes]\nmask.invertd = 3\n", "no mistake 'mask.invertd'. Did you mean 'mask.inverted'?"),
        ("[mistakes]\nmask = -3\n", "must be a number of 0 or more"),
        ("[mistake]\nmask = 3\n", "'mistake' is an unknown key"),
        ("[groups.mine]\nweight = 1\n", "'groups.mine.properties' is missing"),
        ("[ready_made]\nscore = 101\n", "must be 100 or less"),
        ("groups = 3", "must be a table"),
        ("x = ", "cannot be read"),
    ],
)
def test_a_wrong_rubric_is_said_with_its_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as problem:
        rubric_of(tmp_path, text)

    assert said in problem.value.what
    assert "--show-rubric" in str(problem.value.next_step) or "explain" in str(problem.value.next_step)


def test_every_property_of_every_kata_is_in_the_group_that_its_name_says() -> None:
    """A property that no pattern fits counts as one of values; these are all that do."""
    default = rubric.default()
    groups: dict[str, set[str]] = {}
    for kata in catalog.katas():
        for name in catalog.properties(kata):
            groups.setdefault(default.group_of(name).name, set()).add(name)
    astray = {
        name for name in groups["values"] if any(word in name for word in ("mask", "grad", "dtype", "shape", "drop"))
    }

    assert astray == set()
    assert set(groups) == {group.name for group in default.groups}
    assert {"from_scratch", "parameters"} <= groups["runs"]
    assert {"values", "strong_scores", "weights_sum_to_one", "split_keeps_tokens"} <= groups["values"]
    assert {"gradients_with_mask", "empty_rows_have_gradients"} <= groups["gradients"]
    assert {"mask_device", "float32"} <= groups["dtype_and_device"]
    assert groups["cost"] == {"one_product", "own_memory", "split_copies_nothing"}
