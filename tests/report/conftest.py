"""Reports as values, the plain ones and one whose every text is hostile."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from attn_kata.report.model import Diagnosis, Example, Finding, Isolation, NamedMistake, Report

SOURCE = b'''import torch


def scaled_dot_product_attention(q, k, v):
    """Attention."""
    scores = q @ k.transpose(-2, -1)  # <b>bold</b> & "quoted"
    return scores.softmax(-1) @ v
'''
HOSTILE = (
    "</script></style></pre><script>document.title='owned'</script><img src=http://198.51.100.1/x onerror=alert(1)>"
    "{{ 7*7 }} &amp; ]]> --> \x1b[2J\x1b]0;title\x07\x00\x08\ud800\ufffe\u202e"
    " ::error file=a.py::x\r\n::set-output name=a::b\n%0A"
)


def finding(**changed: Any) -> Finding:
    plain = Finding(
        property="values",
        claim="The output is softmax(q kᵀ / sqrt(D)) v.",
        tier="core",
        outcome="passed",
        message=None,
        look_at=None,
        case=None,
        needs=[],
        example=None,
        seconds=0.004,
    )
    return dataclasses.replace(plain, **changed)


def report(**changed: Any) -> Report:
    plain = Report(
        kata="sdpa",
        attempt="sdpa.py",
        outcome="passed",
        seed=0,
        findings=[finding()],
        diagnosis=[],
        ungraded_because=None,
        attempt_output="",
        isolation=Isolation(tier=1, landlock=7, seccomp=True, notes=[]),
        seconds={"total": 1.25},
        versions={"attn_kata": "1.0", "torch": "2.13.0", "python": "3.11.2"},
    )
    return dataclasses.replace(plain, **changed)


WEIGHTS = Example(
    what="the weights",
    rows="query",
    columns="key",
    expected=[[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.2, 0.3, 0.5]],
    got=[[0.5, 0.25, 0.25], [0.25, 0.75, 0.0], [0.2, 0.3, 0.5]],
)
VALUES = Example(what="out[0]", rows="query", columns="feature", expected=[[1.5, -2.0]], got=[[None, 1234.5]])
LAYOUT = Example(
    what="token, head, column of the value that ends here, as three digits",
    rows="token",
    columns="column of the merged heads",
    expected=[[0.0, 1.0, 10.0, 11.0], [100.0, 101.0, 110.0, 111.0]],
    got=[[0.0, 1.0, 100.0, 101.0], [10.0, 11.0, 110.0, 111.0]],
)
MISTAKE = NamedMistake(
    id="scale.missing",
    title="Scores not scaled",
    explanation="You divided by nothing; the contract divides by √16 = √head_dim.",
    question="How large do the scores get?",
    line=6,
    source_line="scores = q @ k.transpose(-2, -1)",
)
FAILED_FINDINGS = [
    finding(property="output_shape"),
    finding(
        outcome="failed",
        message="out[0, 0] is nan, expected 1.5",
        look_at="the scale",
        case={"B": 2, "T": 3},
        example=VALUES,
    ),
    finding(property="float32", outcome="errored", message="no answer within 10 s"),
    finding(property="mask", outcome="skipped", needs=["values"], message="needs values, which does not hold"),
    finding(property="large_scores", tier="edge", outcome="failed", message="out[0] is inf, expected 1"),
]

PASSED = report()
FAILED = report(
    outcome="failed",
    findings=FAILED_FINDINGS,
    diagnosis=[Diagnosis(mistakes=[MISTAKE])],
    attempt_output="here\nhere\n",
    pictures=[WEIGHTS, LAYOUT],
    notes=["a note"],
)
READING = {
    "kata": "sdpa",
    "entry": "ScaledDotProductAttention",
    "lines": [{"what": "built with", "value": "config.n_embd = E, config.n_head = H"}],
    "flags": [
        "entry=Attention",
        "build=" + ",".join(f"config.size_{number}=E" for number in range(12)),
        "shape=(B, T, T)",
    ],
    "departures": ["names", "takes a config"],
    "settled": False,
    "notes": ["No name and no comment says what True in the mask means."],
    "candidates": ["CrossAttention"],
    "ties": [["square=yes"]],
}
READ = report(reading=READING)
TIES = dataclasses.replace(
    FAILED, reading=READING, diagnosis=[Diagnosis(mistakes=[MISTAKE]), Diagnosis(mistakes=[MISTAKE, MISTAKE])]
)
UNGRADED = report(
    outcome="ungraded", findings=[], ungraded_because="it is not Python (invalid syntax) in line 3: def f(:"
)
NOT_WRITTEN = report(
    outcome="failed", not_written=True, findings=[finding(outcome="failed", message="not written yet: …")]
)


def poisoned(value: Any) -> Any:
    """The value with every text in it hostile; the words of a fixed set stay."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = ("kata", "outcome", "tier")
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return type(value)(**{name: item if name in kept else poisoned(item) for name, item in fields.items()})
    if isinstance(value, str):
        return f"{value} {HOSTILE}"
    if isinstance(value, dict):
        return {
            key if key == "total" or key in (*READING, "what", "value") else poisoned(key): poisoned(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    return value


REPORTS = {
    "passed": PASSED,
    "failed": FAILED,
    "ties": TIES,
    "read": READ,
    "ungraded": UNGRADED,
    "not written": NOT_WRITTEN,
    "hostile": poisoned(FAILED),
    "hostile read": poisoned(READ),
    "hostile ungraded": poisoned(UNGRADED),
}


@pytest.fixture(params=list(REPORTS), ids=lambda name: name.replace(" ", "_"))
def any_report(request: pytest.FixtureRequest) -> Report:
    """Every kind of report in turn."""
    chosen: Report = REPORTS[request.param]
    return chosen


@pytest.fixture
def reports() -> dict[str, Report]:
    """All of them by name."""
    return REPORTS


@pytest.fixture
def source() -> bytes:
    """The attempt that the reports are about."""
    return SOURCE


@pytest.fixture
def hostile_source() -> bytes:
    """A source that is hostile, line by line."""
    return b"\xef\xbb\xbf# " + HOSTILE.encode("utf-8", "surrogatepass") + b"\nx = '" + b"\xff\x00<i>'\r" + SOURCE
