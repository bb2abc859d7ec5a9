"""What comes next: prerequisites first, and never back to what a passed kata builds on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from attn_kata import catalog, curriculum, practice
from attn_kata.catalog import Kata
from attn_kata.history import History
from attn_kata.report.model import Isolation, Report


def kata(slug: str, *prerequisites: str, group: str = "One") -> Kata:
    return replace(catalog.find("sdpa"), slug=slug, prerequisites=prerequisites, group=group)


CHAIN = [kata("d", "c"), kata("a"), kata("e", "gone"), kata("b", "a"), kata("c", "b"), kata("f", group="Two")]


def test_a_pass_leaves_behind_all_that_it_builds_on():
    assert curriculum.behind(CHAIN, ["c"]) == {"a", "b", "c"}
    assert curriculum.behind(CHAIN, ["removed_kata"]) == {"removed_kata"}


@pytest.mark.parametrize(
    ("passed", "besides", "following"),
    [
        ([], None, "a"),
        ([], "a", "f"),
        (["a"], None, "b"),
        (["c"], None, "d"),
        (["d"], None, "f"),
        (["d", "f"], None, "e"),
        (["d", "e", "f"], None, None),
    ],
)
def test_the_next_one_is_the_first_whose_prerequisites_are_behind(passed, besides, following):
    found = curriculum.following(CHAIN, passed, besides=besides)

    assert (found.slug if found else None) == following


def test_in_its_group_a_kata_comes_after_what_it_builds_on():
    groups = curriculum.groups(CHAIN)

    assert [each.slug for each in groups["One"]] == ["a", "b", "c", "d", "e"]
    assert list(groups) == ["One", "Two"]


def test_prerequisites_that_do_not_exist_or_go_in_a_circle_are_named():
    circle = [kata("a", "b"), kata("b", "a"), kata("c", "c", "nothing")]

    assert list(curriculum.problems(circle[0], circle)) == ["kata.toml: prerequisites: 'b' needs a itself"]
    assert list(curriculum.problems(circle[2], circle)) == [
        "kata.toml: prerequisites: 'c' needs c itself",
        "kata.toml: prerequisites: there is no kata 'nothing'",
    ]


def test_the_katas_have_prerequisites_that_exist_and_no_circle():
    katas = catalog.katas()

    assert [problem for each in katas for problem in curriculum.problems(each, katas)] == []
    assert {"sdpa", "self_attention", "split_heads"} <= curriculum.foundations(katas)["mha"]


def report(slug: str, outcome: str) -> Report:
    return Report(
        kata=slug,
        attempt="a.py",
        outcome=outcome,
        seed=0,
        findings=[],
        diagnosis=[],
        ungraded_because=None,
        attempt_output="",
        isolation=Isolation(tier=1, landlock=0, seccomp=True, notes=[]),
        seconds={"total": 1.0},
        versions={},
    )


def test_who_passed_mha_is_never_sent_back_to_sdpa(run, folder, home):
    run("start", "sdpa")
    history = History(pytest.fail, home)
    history.record(report("sdpa", "failed"), folder / "sdpa.py", whole=True)
    before = run("status").stdout
    history.record(report("mha", "passed"), folder / "mha.py", whole=True)
    after = run("status").stdout

    assert "  sdpa: due" in before
    assert before.splitlines()[-1] == "Next: attn-kata grade"
    again = after[after.index("Practise again") :]
    assert "sdpa" not in again
    assert again.splitlines()[-1] not in {
        f"Next: attn-kata start {slug}" for slug in ("sdpa", "softmax", "split_heads")
    }
    assert "attn-kata start sdpa" not in run("list").stdout


def test_what_failed_after_the_pass_is_still_practised(tmp_path: Path):
    history = History(pytest.fail, tmp_path)
    for slug, outcome in (("mha", "passed"), ("sdpa", "failed")):
        history.record(report(slug, outcome), tmp_path / f"{slug}.py", whole=True)
    foundations = curriculum.foundations(catalog.katas())
    suggested = practice.what_next(
        history, foundations=foundations, now=datetime.now(timezone.utc) + timedelta(days=30)
    )

    assert {one.kata for one in suggested} == {"mha", "sdpa"}
