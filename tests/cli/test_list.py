"""`attn-kata list`."""

from __future__ import annotations

import json

import pytest


def test_every_kata_is_listed_below_its_level_with_its_minutes(run):
    done = run("list")

    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "Level 1"
    assert any(line.split()[:3] == ["sdpa", "10", "min"] for line in lines)
    assert lines.index("Level 3") < next(at for at, line in enumerate(lines) if line.split()[:1] == ["mha"])
    assert max(map(len, lines)) <= 80


def test_the_next_command_is_named(run):
    assert run("list").stdout.splitlines()[-1] == "Start a kata: attn-kata start sdpa"


def test_the_current_kata_is_marked(run):
    run("start", "mha")
    done = run("list")

    assert any(line.startswith("> mha ") for line in done.stdout.splitlines())
    assert "> marks the current kata. Grade it: attn-kata grade" in done.stdout


def test_a_kata_names_the_katas_that_it_builds_on(run):
    rows = {row["kata"]: row for row in json.loads(run("list", "--json").stdout)}

    assert rows["mla"]["after"] == ["gqa", "rope"]
    assert "; after gqa, rope" in " ".join(run("list").stdout.split())
    assert all(rows[basis]["level"] <= row["level"] for row in rows.values() for basis in row["after"])


def test_json_has_every_kata_and_nothing_else_is_printed(run):
    done = run("list", "--json")

    rows = {row["kata"]: row for row in json.loads(done.stdout)}
    assert rows["mha"]["level"] == 3
    assert rows["mha"]["passed_at"] is None
    assert set(rows["sdpa"]) == {
        "kata",
        "title",
        "level",
        "minutes",
        "summary",
        "after",
        "current",
        "passed_at",
        "attempts",
    }


@pytest.mark.parametrize("command", [["list"], ["explain", "values"], ["grade", "sdpa.py"], ["interview", "list"]])
def test_json_is_asked_for_in_the_same_words_everywhere(run, folder, command):
    (folder / "sdpa.py").write_text("import no_such_package\n")
    both = [run(*command, *words) for words in (["--json"], ["--format", "json"])]
    bodies = [json.loads(done.stdout) for done in both]
    for body in bodies:
        if "seconds" in body:
            del body["seconds"]  # of a report

    assert bodies[0] == bodies[1]
    assert [done.stderr for done in both] == ["", ""]
    assert both[0].returncode == both[1].returncode


def test_listing_leaves_nothing_behind(run, home):
    run("list")

    assert not home.exists()


def test_any_encoding_of_stdout_will_do(run):
    done = run("list", PYTHONIOENCODING="ascii")

    assert done.returncode == 0
    assert "sdpa" in done.stdout


@pytest.mark.parametrize("columns", ["banana", "0", "-5", "", "²"])
def test_columns_that_say_nothing_are_those_of_a_pipe(run, columns):
    assert run("list", COLUMNS=columns).stdout == run("list", COLUMNS="80").stdout
    assert run("list", COLUMNS="50").stdout != run("list", COLUMNS="80").stdout
