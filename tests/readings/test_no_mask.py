"""Code whose call allows to leave the mask out, and that uses it all the same."""

from __future__ import annotations

import pytest
from tests.readings.pairs import told
from tests.readings.test_interfaces import ATTEND
from tests.readings.test_kinds import HEAD

IF_GIVEN = "        if mask is not None:\n            scores ="
ALWAYS = ATTEND.replace(IF_GIVEN, "        scores =")
# In a line of its own, before the scores are filled.
MADE_BOOLEAN = ATTEND.replace(IF_GIVEN, "        mask = mask.bool()\n        scores =")
FUNCTION = """
def attend(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return F.softmax(scores.masked_fill(mask.logical_not(), float("-inf")), dim=-1) @ v
"""


def graded(engine, text, kata="mha"):
    return engine.grade(kata, (HEAD + text).encode(), attempt="mine.py", reads=True)


@pytest.mark.parametrize(("kata", "text"), [("mha", ALWAYS), ("mha", MADE_BOOLEAN), ("sdpa", FUNCTION)])
def test_it_is_named_with_its_line(kata, text, shared_engine):
    report = graded(shared_engine, text, kata)

    assert report.outcome == "failed"
    assert told(report) == {"mask.none"}
    assert "mask" in report.diagnosis[0].mistakes[0].source_line
    assert any(
        note.startswith("The mask is optional (its default is None), but without it the code raises")
        for note in report.reading["notes"]
    )


def test_another_mistake_is_named_beside_it(shared_engine):
    report = graded(shared_engine, ALWAYS.replace(" / math.sqrt(self.d)", ""))

    assert told(report) == {"mask.none", "scale.missing"}


NONE_ELSEWHERE = {
    "a_helper_that_returns_nothing": (
        "scores = scores.masked_fill(mask == 0",
        "scores = None and scores.masked_fill(mask == 0",
    ),
    "a_table_that_is_not_there": ("scores = q @", "self.table = None\n        scores = self.table + q @"),
}


@pytest.mark.parametrize("name", NONE_ELSEWHERE)
def test_none_in_the_place_of_something_else_is_no_mask(name, shared_engine):
    old, new = NONE_ELSEWHERE[name]
    assert old in ATTEND
    report = graded(shared_engine, ATTEND.replace(old, new, 1))

    assert "mask.none" not in told(report)


def test_a_mask_that_must_be_given_is_no_mistake(shared_engine):
    report = graded(shared_engine, ALWAYS.replace("mask=None", "mask"))

    assert report.outcome == "passed"


def test_a_mask_by_a_short_name_is_one(shared_engine):
    report = graded(shared_engine, ALWAYS.replace("mask=None", "src_msk").replace("(mask ==", "(src_msk =="))

    assert report.outcome == "passed"
    assert any(flag.startswith("call=") and "src_msk=mask" in flag for flag in report.reading["flags"])


RAISES_WITH_MASK = ATTEND.replace("mask == 0", "int(mask) == 0")


def test_where_every_mask_raises_mistakes_that_show_without_one_are_named(shared_engine):
    three = RAISES_WITH_MASK.replace(" / math.sqrt(self.d)", "").replace("dim=-1", "dim=-2")
    assert three.count("dim=-2") == 1

    report = graded(shared_engine, three)

    assert told(report) == {"scale.missing", "softmax.query_axis"}


def test_where_every_mask_raises_right_code_gets_no_verdict(shared_engine):
    report = graded(shared_engine, RAISES_WITH_MASK)

    assert report.outcome == "ungraded"


def test_where_every_mask_raises_what_nothing_explains_gets_no_verdict(shared_engine):
    report = graded(shared_engine, RAISES_WITH_MASK.replace("q @ k", "(q + 1) @ k"))

    assert report.outcome == "ungraded"
    assert "every call that was tried with a mask raises" in (report.ungraded_because or "")
