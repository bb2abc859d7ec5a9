"""Code that casts to half precision is read with its casts left out, so that its numbers can be compared."""

from __future__ import annotations

import pytest
from tests.readings.test_how_far_it_is_right import ATTEND, MERGE, SCALE
from tests.readings.test_kinds import HEAD

LAYERS = "(nn.Linear(width, width) for _ in range(4))"
CASTS = [
    ATTEND.replace(LAYERS, "(nn.Linear(width, width).half() for _ in range(4))")
    .replace("w(x)", "w(x.half()).float()")
    .replace(MERGE, MERGE + ".half()"),
    ATTEND.replace(LAYERS, "(nn.Linear(width, width, dtype=torch.bfloat16) for _ in range(4))").replace(
        "B, T, E = x.shape", "x = x.to(torch.bfloat16)\n        B, T, E = x.shape"
    ),
    ATTEND.replace("scores.softmax(dim=-1)", "scores.float().softmax(dim=-1).half()"),
    ATTEND.replace("w(x)", "w(x).to(dtype=torch.float16)").replace(MERGE, MERGE + ".to(x.dtype)"),
    ATTEND.replace("w(x)", "w(x).type(torch.float16)").replace(MERGE, MERGE + ".type_as(x)"),
]


@pytest.mark.parametrize("text", CASTS)
def test_it_is_right_and_the_reading_can_be_typed_back(shared_engine, text):
    source = (HEAD + text).encode()
    report = shared_engine.grade("mha", source, attempt="mine.py", reads=True)

    assert report.passed, report.ungraded_because
    assert report.reading is not None
    assert "what it casts to half precision stays as it is" in report.reading["departures"]
    again = shared_engine.grade("mha", source, attempt="mine.py", reads=True, flags=tuple(report.reading["flags"]))
    assert again.reading == report.reading


@pytest.mark.parametrize("text", CASTS)
def test_its_mistake_is_named(shared_engine, text):
    assert text.count(SCALE) == 1
    source = (HEAD + text.replace(SCALE, "scores / E**0.5")).encode()
    report = shared_engine.grade("mha", source, attempt="mine.py", reads=True)

    assert [mistake.id for one in report.diagnosis for mistake in one.mistakes] == ["scale.embed_dim"]


def test_code_without_casts_keeps_its_precision(shared_engine):
    report = shared_engine.grade("mha", (HEAD + ATTEND).encode(), attempt="mine.py", reads=True)

    assert report.reading is not None
    assert "what it casts to half precision stays as it is" not in report.reading["departures"]
