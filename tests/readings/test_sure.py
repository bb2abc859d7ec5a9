"""A person who is sure of the reading gets a verdict where no known mistake explains the code."""

from __future__ import annotations

import pytest
from tests.readings.test_how_far_it_is_right import ATTEND, SCALE
from tests.readings.test_kinds import HEAD

UNKNOWN = (HEAD + ATTEND.replace(SCALE, "scores / self.d**0.5 + k.square().sum(-1)[:, :, None]")).encode()
GATED = (HEAD + ATTEND.replace(SCALE, "scores / self.d**0.5 * torch.sigmoid(self.gate)")).replace(
    "        self.h,", "        self.gate = nn.Parameter(torch.rand(1))\n        self.h,"
)
REFUSES = HEAD + ATTEND.replace("x.shape\n", "x.shape\n        if T > 4:\n            raise ValueError('too long')\n")


def test_what_nothing_explains_is_a_verdict_for_a_person_who_is_sure(shared_engine):
    open_, sure = (
        shared_engine.grade("mha", UNKNOWN, attempt="mine.py", reads=True, flags=flags) for flags in ((), ("sure=yes",))
    )

    assert open_.outcome == "ungraded"
    assert "If the reading is right, add --read sure=yes" in (open_.ungraded_because or "")
    assert (sure.outcome, sure.diagnosis) == ("failed", [])
    assert any("The weights are the first that are wrong: line" in note for note in sure.notes)
    assert sure.reading is not None
    assert any("sure=yes" in note for note in sure.reading["notes"])
    assert "sure=yes" in sure.reading["flags"]


@pytest.mark.parametrize("text", [GATED, REFUSES])
def test_so_is_what_seems_to_be_another_kind_and_what_refuses_some_inputs(shared_engine, text):
    open_, sure = (
        shared_engine.grade("mha", text.encode(), attempt="mine.py", reads=True, flags=flags)
        for flags in ((), ("sure=yes",))
    )

    assert (open_.outcome, sure.outcome) == ("ungraded", "failed")


def test_right_code_stays_right(shared_engine):
    report = shared_engine.grade("mha", (HEAD + ATTEND).encode(), attempt="mine.py", reads=True, flags=("sure=yes",))

    assert report.passed
