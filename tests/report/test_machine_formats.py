"""JUnit, Gradescope and GitHub: each read the way its real reader reads it."""

from __future__ import annotations

import json
import re

import pytest

from attn_kata.report.formats import render

FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e]")


# JUnit ---------------------------------------------------------------------------------------------------------------


def test_junit_is_read_by_a_real_reader_with_one_case_a_property(reports, tmp_path):
    junitparser = pytest.importorskip("junitparser")
    file = tmp_path / "report.xml"
    file.write_text(render(reports["failed"], "junit"), "utf-8")
    (suite,) = junitparser.JUnitXml.fromfile(str(file))
    cases = {case.name: case for case in suite}

    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == ("attn-kata.sdpa", 5, 1, 1, 2)
    assert list(cases) == ["output_shape", "values", "float32", "mask", "large_scores"]
    assert cases["output_shape"].is_passed
    (failure,) = cases["values"].result
    assert isinstance(failure, junitparser.Failure)
    assert failure.message == "out[0, 0] is nan, expected 1.5"
    assert "B=2 T=3" in failure.text
    assert isinstance(cases["float32"].result[0], junitparser.Error)
    assert cases["mask"].result[0].message == "needs values, which does not hold"
    assert cases["large_scores"].is_skipped, "a property beyond the bar fails no build"
    assert "scale.missing" in suite._elem.findtext("system-out")


def test_junit_of_what_could_not_be_graded_is_an_error(reports, tmp_path):
    junitparser = pytest.importorskip("junitparser")
    (suite,) = junitparser.JUnitXml.fromstring(render(reports["ungraded"], "junit").encode())

    assert (suite.tests, suite.errors) == (1, 1)
    assert "in line 3" in next(iter(suite)).result[0].message


def test_junit_of_any_report_is_valid_xml(any_report):
    junitparser = pytest.importorskip("junitparser")
    written = render(any_report, "junit")
    (suite,) = junitparser.JUnitXml.fromstring(written.encode())

    assert FORBIDDEN.search(written) is None
    assert suite.tests == len(list(suite)) == max(1, len(any_report.findings))


# Gradescope ----------------------------------------------------------------------------------------------------------

# What https://gradescope-autograders.readthedocs.io/en/latest/specs/#output-format names, and of which type.
TOP = {
    "score": float,
    "execution_time": int,
    "output": str,
    "output_format": str,
    "test_output_format": str,
    "test_name_format": str,
    "visibility": str,
    "stdout_visibility": str,
    "tests": list,
}
TEST = {
    "status": str,
    "name": str,
    "number": str,
    "output": str,
    "tags": list,
    "visibility": str,
}


def test_gradescope_has_the_documented_keys_and_types(any_report):
    written = render(any_report, "gradescope")
    body = json.loads(written)

    assert {name: type(value) for name, value in body.items()} == TOP
    assert len(body["tests"]) == len(any_report.findings)
    for test in body["tests"]:
        assert {name: type(value) for name, value in test.items()}.items() <= TEST.items()
        assert test["status"] in ("passed", "failed")
    assert FORBIDDEN.search("".join(_texts(body))) is None


def test_gradescope_has_the_score_of_100_with_its_sum(reports):
    body = json.loads(render(reports["failed"], "gradescope"))

    assert body["score"] == 85.0
    assert "−15  Scores not scaled (scale.missing)" in body["output"]
    assert not any("score" in test or "max_score" in test for test in body["tests"])
    assert json.loads(render(reports["passed"], "gradescope"))["score"] == 100
    assert json.loads(render(reports["ungraded"], "gradescope"))["score"] == 0


def test_gradescope_says_of_each_property_that_was_not_tried_that_it_was_not(reports):
    body = json.loads(render(reports["failed"], "gradescope"))
    untried = [test for test in body["tests"] if "skipped" in test["tags"]]

    assert untried
    assert all(test["name"].endswith(" (not tried)") and "\nnot tried: " in test["output"] for test in untried)
    assert "A property that was not tried is shown as failed" in body["output"]
    assert "(not tried)" not in "".join(test["name"] for test in body["tests"] if test not in untried)
    assert "not tried" not in json.loads(render(reports["passed"], "gradescope"))["output"]


def _texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


# GitHub --------------------------------------------------------------------------------------------------------------

# As the runner reads a command (ActionCommand.TryParseV2): properties up to the next ::, then the message.
COMMAND = re.compile(r"^::(?P<command>[a-z]+) (?P<properties>.*?)::(?P<data>.*)$")


def read(line):
    """The command, its properties and its message, unescaped as the runner does."""
    found = COMMAND.match(line)
    if not found:
        return None
    pairs = dict(pair.split("=", 1) for pair in found["properties"].split(","))

    def unescape(text, *also):
        for code, letter in (*also, ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            text = text.replace(code, letter)
        return text

    properties = {name: unescape(value, ("%3A", ":"), ("%2C", ",")) for name, value in pairs.items()}
    return found["command"], properties, unescape(found["data"])


def test_github_annotates_the_line_of_the_mistake_and_every_failure(reports):
    lines = render(reports["failed"], "github").splitlines()
    commands = [read(line) for line in lines[:-1]]

    assert [(command, properties["title"]) for command, properties, _ in commands] == [
        ("error", "Scores not scaled (scale.missing)"),
        ("error", "values failed"),
        ("error", "float32 errored"),
        ("notice", "large_scores failed (beyond the bar: reported, never decides)"),
    ]
    assert commands[0][1] == {"file": "sdpa.py", "line": "6", "title": "Scores not scaled (scale.missing)"}
    assert "divides by √16" in commands[0][2]
    assert commands[1][2].splitlines()[1] == "B=2 T=3"
    assert lines[-1].startswith("FAILED  sdpa  sdpa.py")


def test_github_says_the_line_of_what_could_not_be_graded(reports):
    command, properties, _ = read(render(reports["ungraded"], "github").splitlines()[0])

    assert (command, properties["line"]) == ("error", "3")


def test_github_lets_no_text_become_a_command(any_report):
    lines = render(any_report, "github").splitlines()
    expected = {"error", "warning", "notice"}

    assert all(read(line)[0] in expected and read(line)[1].keys() <= {"file", "line", "title"} for line in lines[:-1])
    assert not lines[-1].startswith("::")
    assert FORBIDDEN.search("".join(lines)) is None
