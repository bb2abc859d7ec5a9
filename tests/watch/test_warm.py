"""A kept engine: it grades as a fresh one does, whatever happened before, and leaves nothing more behind each time."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from attn_kata import catalog, specimens
from attn_kata.engine import persistent
from attn_kata.engine.client import Engine, EngineFault
from attn_kata.engine.persistent import PersistentEngine
from attn_kata.report.model import Report

psutil = pytest.importorskip("psutil")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="templates are forked, on Linux alone"),
    pytest.mark.usefixtures("ready_engines"),
]

SDPA = catalog.find("sdpa")
WRONG = specimens.find(SDPA.folder, "wrong/scale_missing").source().encode()
RIGHT = SDPA.solution.read_bytes()
READS = Path(__file__).parents[1] / "attacks" / "attempts" / "sdpa"


def told(report: Report) -> dict[str, Any]:
    """Everything but the times."""
    body = report.to_dict()
    body.pop("seconds")
    for finding in body["findings"]:
        finding.pop("seconds")
    return body


def family(engine: Engine) -> list[Any]:
    """The engine's process and its children."""
    process = psutil.Process(engine._process.pid)
    return [process, *process.children(recursive=True)]


def until_ready(engine: Engine) -> None:
    """Wait until a template, a grader child and an attempt child stand ready and idle."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(psutil.NoSuchProcess):  # a grader child may be about to go
            members = family(engine)
            before = sum(sum(member.cpu_times()[:2]) for member in members)
            time.sleep(0.3)
            if len(members) == 4 and sum(sum(member.cpu_times()[:2]) for member in members) == before:
                return
    raise AssertionError([member.cmdline() for member in family(engine)])


def test_a_warm_grading_says_what_a_cold_one_says_and_leaves_nothing_more():
    with Engine() as engine:
        cold = {source: told(engine.grade("sdpa", source, attempt="sdpa.py")) for source in (WRONG, RIGHT)}
        until_ready(engine)
        descriptors = []
        for _ in range(3):
            for source in (WRONG, RIGHT):
                assert told(engine.grade("sdpa", source, attempt="sdpa.py")) == cold[source]
            until_ready(engine)
            descriptors.append((len(family(engine)), [member.num_fds() for member in family(engine)]))
            left = [path.name for path in engine._folder.iterdir() if path.name != "engine.log"]
            assert len(left) == 1, "the folder of the attempt child that waits"
        assert descriptors[1:] == descriptors[:-1]
        members = family(engine)
    assert psutil.wait_procs(members, timeout=5)[1] == []
    assert cold[RIGHT]["passed"]


@pytest.mark.parametrize("name", ["forge/answers_in_frames_and_gc", "read/memory_through_proc", "harm/plants_files"])
def test_what_waits_is_as_confined_as_what_is_forked_when_it_is_asked_for(name):
    source = (READS / f"{name}.py").read_bytes()
    with Engine() as engine:
        cold = engine.grade("sdpa", source, attempt="sdpa.py")
        until_ready(engine)
        warm = engine.grade("sdpa", source, attempt="sdpa.py")

    assert (warm.outcome, warm.isolation) == (cold.outcome, cold.isolation)
    assert [finding.outcome for finding in warm.findings] == [finding.outcome for finding in cold.findings]


@pytest.mark.parametrize(
    ("slug", "name"),
    [("mha", "right/drawn_dropout"), ("attention_dropout", "wrong/drawn_once")],
)
def test_what_is_drawn_at_random_is_the_same_whether_a_grader_child_stood_ready_or_not(slug, name):
    source = specimens.find(catalog.find(slug).folder, name).source().encode()
    with Engine() as engine:
        cold = told(engine.grade(slug, source, attempt="attempt.py"))
        other = told(engine.grade(slug, source, attempt="attempt.py", seed=5))
        until_ready(engine)

        assert told(engine.grade(slug, source, attempt="attempt.py")) == cold
        until_ready(engine)
        assert told(engine.grade(slug, source, attempt="attempt.py", seed=5)) == other


@pytest.mark.parametrize("which", [0, 1, 2], ids=["template", "attempt", "grader"])
def test_a_process_that_waits_and_is_killed_is_not_missed(which):
    with Engine() as engine:
        cold = told(engine.grade("sdpa", RIGHT, attempt="sdpa.py"))
        until_ready(engine)
        sorted(family(engine)[1:], key=lambda member: member.pid)[which].kill()
        time.sleep(0.1)

        assert told(engine.grade("sdpa", RIGHT, attempt="sdpa.py")) == cold


def test_another_kata_and_another_property_are_not_mistaken_for_the_last():
    softmax = catalog.find("softmax")
    with Engine() as engine:
        engine.grade("sdpa", RIGHT, attempt="sdpa.py")
        until_ready(engine)
        other = engine.grade("softmax", softmax.solution.read_bytes(), attempt="softmax.py")
        part = engine.grade("sdpa", RIGHT, attempt="sdpa.py", properties=("output_shape",), seed=3)

    assert (other.kata, other.outcome) == ("softmax", "passed")
    assert (part.seed, [finding.property for finding in part.findings]) == (3, ["output_shape"])


def test_an_engine_begins_anew_when_the_package_changed_and_after_a_fault(monkeypatch):
    states = [frozenset({("a.py", 1, 1)})]
    monkeypatch.setattr(persistent, "_file_states", lambda: states[-1])
    monkeypatch.setattr(persistent, "LOOK_SECONDS", 0.0)
    with PersistentEngine() as kept:
        kept.grade("sdpa", RIGHT, attempt="sdpa.py")
        first = kept._engine
        kept.grade("sdpa", RIGHT, attempt="sdpa.py")
        assert kept._engine is first
        states.append(frozenset({("a.py", 2, 1)}))
        kept.grade("sdpa", RIGHT, attempt="sdpa.py")
        second = kept._engine
        assert second is not first
        assert second is not None
        second._process.kill()
        with pytest.raises(EngineFault):
            kept.grade("sdpa", RIGHT, attempt="sdpa.py")
        assert kept.grade("sdpa", RIGHT, attempt="sdpa.py").passed
    with pytest.raises(EngineFault):
        kept.grade("sdpa", RIGHT, attempt="sdpa.py")
