"""Attacks as files, graded in a warm engine, and what has to hold of the grader after each of them.

attempts/<kata>/<theme>/<name>.py is one attack. Its header says, after what it does:
    # outcome: passed | failed | ungraded     the verdict; "not passed" where it is not said
    # fails: PROPERTY                         one that fails
    # says: TEXT | TEXT                       part of some finding's message, or of why it was not graded; one of these
    # seconds: NUMBER                         for one call, where it needs more than others
    # open: CONFIGURATION, ...                where it gets through; there it prints BREACH, and nowhere else
In the text @ROOT@ is where the katas are, @CANARY@ a folder of the person's, @SECRET@ what its files and environment hold.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from attn_kata import resources
from attn_kata.engine.client import Engine
from attn_kata.report import json as as_json
from attn_kata.report import terminal
from attn_kata.report.model import Report
from attn_kata.sandbox import namespaces

HERE = Path(__file__).parent
ROOT = resources.solutions_folder().parent
SECRET = "the-secret-of-the-person"
CALL_SECONDS = 1.0
PATIENT_SECONDS = 10.0  # for a right attempt, which may be slow on a busy machine
PLANTED = "attn_kata_planted"
PUBLIC_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attempt that cheats, breaks or harms, and what is to come of it."""

    name: str
    slug: str
    source: str
    outcome: str | None
    fails: str | None
    says: str
    seconds: float
    open_at: tuple[str, ...]

    @property
    def asked(self) -> dict[str, Any]:
        """The arguments of its grading."""
        return {
            "attempt": self.name.rpartition("/")[2] + ".py",
            "timeout": 20.0,
            "call_seconds": self.seconds,
            "diagnose": "break/" not in self.name,
        }

    def bytes(self, canary: Path, root: Path = ROOT) -> bytes:
        filled = self.source.replace("@ROOT@", str(root)).replace("@CANARY@", str(canary))
        return filled.replace("@SECRET@", SECRET).encode()


def _load(path: Path) -> Attack:
    source = path.read_text("utf-8")
    header = dict(re.findall(r"^# (outcome|fails|says|seconds|open): (.*)$", source, re.MULTILINE))
    slug, *name = path.relative_to(HERE / "attempts").with_suffix("").parts
    return Attack(
        name="/".join(name if slug == "sdpa" else [slug, *name]),
        slug=slug,
        source=source,
        outcome=header.get("outcome"),
        fails=header.get("fails"),
        says=header.get("says", ""),
        seconds=float(header.get("seconds", PATIENT_SECONDS if header.get("outcome") == "passed" else CALL_SECONDS)),
        open_at=tuple(header["open"].split(", ")) if "open" in header else (),
    )


ATTACKS = [_load(path) for path in sorted((HERE / "attempts").rglob("*.py"))]


# What is graded under every configuration but tier 1, which meets everything.
ESSENTIAL = (
    "read/",
    "harm/",
    "right/streams_replaced",
    "break/forks",
    "break/daemon",
    "break/signals_to",
    "break/loop_in_call",
    "break/segfault",
    "break/memory_of",
    "break/garbage_flood",
    "break/shared_memory",
    "break/system_v",
    "break/descriptors_closed",
    "forge/exits_in_call",
    "forge/reply_of_its_own",
    "forge/answers_in_frames_and_gc",
    "forge/patched_comparisons",
    "forge/lying_subclass",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `attack` gets each one; in a module that says ONLY_ESSENTIAL, the essential ones."""
    if "attack" in metafunc.fixturenames:
        begins = ESSENTIAL if getattr(metafunc.module, "ONLY_ESSENTIAL", False) else ("",)
        chosen = [attack for attack in ATTACKS if attack.name.startswith(begins)]
        metafunc.parametrize("attack", chosen, ids=[attack.name for attack in chosen])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:  # every test of the run, not of this folder alone
        if sys.platform != "linux" and HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="what is attacked are Linux's layers"))


@pytest.fixture(scope="module")
def canary() -> Iterator[Path]:
    """A folder of the person's, open to everybody as far as modes say, so that only the layers protect it."""
    folder = Path(tempfile.mkdtemp(prefix="person-"))
    (folder / ".ssh").mkdir()
    (folder / "empty").mkdir()
    for name in ("id_rsa", ".ssh/id_rsa", "victim.txt"):
        (folder / name).write_text(SECRET)
        (folder / name).chmod(0o666)
    for path in (folder, folder / ".ssh", folder / "empty"):
        path.chmod(0o777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def start() -> Iterator[Callable[[int], Engine]]:
    """An engine of a tier, kept warm for all attacks of this worker, in whose caller's environment there is a secret."""
    engines: dict[int, Engine] = {}

    def started(tier: int) -> Engine:
        if tier not in engines:
            os.environ["ATTN_KATA_CANARY"] = SECRET
            try:
                engines[tier] = Engine(tier=tier)
            finally:
                del os.environ["ATTN_KATA_CANARY"]
            engines[tier].wait_until_ready()
            time.sleep(0.5)  # in which it warms up
        return engines[tier]

    yield started
    for engine in engines.values():
        engine.close()


def grade(engine: Engine, attack: Attack, canary: Path) -> Report:
    """The report on an attack; fails where it took longer than its deadlines allow."""
    began = time.monotonic()
    report = engine.grade(attack.slug, attack.bytes(canary), **attack.asked)

    assert time.monotonic() - began < 12, "it held the grader up"
    return report


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything in a folder: names, kinds, modes, owners, times, contents."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, content)
    return found


def assert_honest(attack: Attack, report: Report) -> None:
    """The verdict is the attack's, with its reason."""
    said = [report.ungraded_because or "", *(finding.message or "" for finding in report.findings)]
    if attack.outcome is None:
        assert report.outcome != "passed"
    else:
        assert report.outcome == attack.outcome, said
    assert any(says in text for says in attack.says.split(" | ") for text in said), said
    if attack.fails is not None:
        assert {finding.property: finding.outcome for finding in report.findings}[attack.fails] == "failed", said


def assert_no_breach(attack: Attack, report: Report, *configurations: str) -> None:
    """It got through where its header says so, and nowhere else."""
    through = "BREACH" in report.attempt_output
    assert through == bool({"every tier", *configurations} & set(attack.open_at)), report.attempt_output[-2000:]


def assert_shown_harmlessly(report: Report) -> None:
    """Nothing of the attempt's steers a terminal, and the JSON is ASCII."""
    for color in (False, True):
        shown = terminal.render(report, color=color)
        bare = re.sub(r"\x1b\[[0-9;]*m", "", shown) if color else shown
        assert not CONTROL.search(bare), repr(CONTROL.search(bare))
        assert len(shown) < 100_000
    written = as_json.render(report)
    assert written.isascii()
    assert json.loads(written)["outcome"] == report.outcome


def only_what_stands_ready(engine_session: int, sessions: list[int]) -> bool:
    """Whether processes of these sessions are what an engine keeps for the next grading, at most, and no attempt's.

    That is a template and its grader child in the engine's session, and one attempt child that waits in one of its own (of
    two processes in a jail).
    """
    others = [session for session in sessions if session != engine_session]
    return len(sessions) - len(others) <= 2 and len(set(others)) <= 1 and len(others) <= 2


def sessions_below(process: psutil.Process) -> list[int]:
    found = []
    for child in process.children(recursive=True):
        try:
            found.append(os.getsid(child.pid))
        except ProcessLookupError:
            continue
    return found


def contents(folder: Path) -> list[str]:
    """The names in a folder; none where it was removed meanwhile."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def assert_nothing_left(engine: Engine) -> None:
    """No process of an attempt's, no file in the engine's folder, none planted elsewhere."""
    process, until = psutil.Process(engine._process.pid), time.monotonic() + 15
    own = os.getsid(process.pid)
    # The report is told before the last child is reaped and its folder removed, while the next one is made ready already.
    while True:
        ready = only_what_stands_ready(own, sessions_below(process))
        log, *waiting = sorted(engine._folder.iterdir(), key=lambda path: path.name != "engine.log")
        empty = [contents(path) for path in waiting] in ([], [[]])
        if (ready and empty) or time.monotonic() > until:
            break
        time.sleep(0.01)
    assert ready, process.children(recursive=True)
    assert log.name == "engine.log"
    assert empty, waiting
    assert [folder for folder in PUBLIC_FOLDERS if os.path.lexists(os.path.join(folder, PLANTED))] == []


def assert_next_is_unaffected(engine: Engine) -> None:
    """The reference passes in the same engine right after."""
    source = (resources.solutions_folder() / "sdpa.py").read_bytes()
    report = engine.grade("sdpa", source, attempt="sdpa.py", properties=("output_shape",))
    assert report.outcome == "passed"
    assert report.attempt_output == ""


@pytest.fixture(scope="module")
def withstands(start: Callable[[int], Engine], canary: Path) -> Callable[..., Report]:
    """`withstands(attack, tier=1)`: grade it, and hold the grader to everything that has to hold after it."""

    def check(attack: Attack, *, tier: int, configurations: tuple[str, ...] = ()) -> Report:
        engine, before = start(tier), snapshot(canary)
        report = grade(engine, attack, canary)

        assert_honest(attack, report)
        assert_no_breach(attack, report, *configurations)
        assert SECRET not in as_json.render(report)
        assert_shown_harmlessly(report)
        assert_nothing_left(engine)
        if not configurations:
            assert snapshot(canary) == before
        if tier == 1 or attack.name.startswith("break/"):
            assert_next_is_unaffected(engine)
        return report

    return check


@pytest.fixture(scope="session")
def practice() -> set[str]:
    """What tier 0 is called here, in the headers."""
    named = {"tier 0"} if namespaces.switched_off() else {"tier 0", "tier 0 with user namespaces"}
    return named | ({"tier 0 as root"} if os.geteuid() == 0 else set())


@pytest.fixture(scope="module")
def attacks() -> list[Attack]:
    return [attack for attack in ATTACKS if attack.name.startswith(ESSENTIAL)]


@pytest.fixture
def judge() -> Callable[..., None]:
    """What a report alone has to satisfy: `judge(attack, report, *configurations)`."""

    def check(attack: Attack, report: Report, *configurations: str) -> None:
        assert_honest(attack, report)
        assert_no_breach(attack, report, *configurations)
        assert_shown_harmlessly(report)

    return check


@pytest.fixture
def nothing_left() -> Callable[[int, list[int]], bool]:
    return only_what_stands_ready
