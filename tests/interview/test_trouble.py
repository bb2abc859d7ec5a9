"""A full disk, a read-only or damaged database, two terminals: a clear sentence, nothing lost, no time won."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attn_kata.errors import UsageError
from attn_kata.interview import control
from attn_kata.interview.control import Desk
from attn_kata.interview.storage import NotKept
from attn_kata.interview.store import Store, digest_of

from .conftest import RIGHT

AS_ROOT = os.geteuid() == 0


def full_disk() -> None:
    """From here on no file of this process grows beyond what it is."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_two_terminals_save_at_the_same_time_and_nothing_is_lost(desk, begin):
    session = begin()
    sources = [b"# %d" % number for number in range(24)]
    with ThreadPoolExecutor(4) as both:
        list(both.map(lambda source: control.save(desk, session.id, source), sources))
    kept = {event.source for event in desk.store.load(session.id).events if event.kind == "saved"}

    assert kept == {digest_of(source) for source in sources}


def test_two_terminals_submit_at_the_same_time_and_one_is_refused(desk, begin):
    session = begin()
    barrier, outcomes = threading.Barrier(2), []

    def submit(source: bytes) -> None:
        barrier.wait()
        try:
            outcomes.append(control.submit(desk, session.id, source).state)
        except UsageError as refused:
            outcomes.append(str(refused))

    threads = [threading.Thread(target=submit, args=(b"# %d" % number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes)[1] == "submitted"
    assert "You cannot submit" in sorted(outcomes)[0]
    assert [event.kind for event in desk.store.load(session.id).events].count("submitted") == 1


def test_two_terminals_look_at_the_clock_and_one_takes_the_file(desk, clock, begin):
    session = begin()
    clock.goes(minutes=60)
    with ThreadPoolExecutor(4) as both:
        news = [ticked.news for ticked in both.map(lambda _: control.tick(desk, session.id), range(4))]

    assert [event.kind for event in desk.store.load(session.id).events].count("time_up") == 1
    assert sum(map(bool, news)) == 1


def test_two_terminals_start_and_one_is_refused(run):
    commands = [("start", "--track", "warm-up")] * 2
    with ThreadPoolExecutor(2) as both:
        done = list(both.map(lambda arguments: run(*arguments), commands))

    assert sorted(one.returncode for one in done) == [0, 2]
    assert "still runs; only one can run at a time" in next(one.stderr for one in done if one.returncode == 2)


def test_a_full_disk_is_said_and_keeps_what_was_kept(run, desk):
    run("start", "--track", "warm-up")
    before = desk.store.active()
    refused = run("ask", "is x always 4d", preexec_fn=full_disk)
    after = desk.store.active()

    assert refused.returncode == 2
    assert "Nothing was kept" in refused.stderr
    assert "Free some space" in refused.stderr
    assert refused.stdout == ""
    assert after == before
    assert run("ask", "is x always 4d").returncode == 0


def test_a_full_disk_keeps_the_clock_running_and_the_file_as_it_is(run, desk, folder):
    run("start", "--track", "warm-up")
    run("next")
    session = desk.store.active()
    session.file.write_bytes(RIGHT + b"#" * 9000)
    refused = run("submit", preexec_fn=full_disk)

    assert refused.returncode == 2
    assert "Your own file is unchanged, and the clock goes on." in refused.stderr
    assert desk.store.load(session.id).events[2].data == session.events[2].data
    assert run("submit").returncode == 0
    assert desk.store.source(session.id, desk.store.load(session.id).finals[0]) == RIGHT + b"#" * 9000


@pytest.mark.parametrize("damage", ["no database", "cut short", "overwritten"])
def test_a_damaged_database_is_set_aside_and_said(run, home, damage):
    run("start", "--track", "warm-up")
    file = home / "interview.db"
    content = file.read_bytes()
    if damage == "no database":
        file.write_bytes(b"this is no database" * 500)
    elif damage == "cut short":
        file.write_bytes(content[: len(content) // 2 + 100])
    else:
        file.write_bytes(content[:100] + os.urandom(len(content) - 100))
    damaged = file.read_bytes()
    done = run("start", "--track", "warm-up")

    assert done.returncode == 0, done.stderr
    assert "was damaged" in done.stderr
    assert "It is kept as 'interview.damaged-1.db'" in done.stderr
    assert (home / "interview.damaged-1.db").read_bytes() == damaged
    assert run("status").returncode == 0


def as_somebody_without_rights(work: Callable[[], str]) -> str:
    """What `work` gives in a process that no file permission is waived for; root's are, so that is not root's."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if AS_ROOT:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            os.write(writes, work().encode())
        except BaseException as problem:
            os.write(writes, f"{type(problem).__name__}: {problem}".encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        told = pipe.read().decode()
    os.waitpid(child, 0)
    return told


def test_a_read_only_database_is_said_and_still_read(desk, begin, home, tmp_path):
    session = begin()
    if AS_ROOT:
        for place in (home, tmp_path, *tmp_path.parents):
            if "pytest" in str(place):
                place.chmod(0o755)
    (home / "interview.db").chmod(0o444)
    home.chmod(0o555)
    read = as_somebody_without_rights(lambda: desk.store.load(session.id).state)
    refused = as_somebody_without_rights(lambda: control.ask(desk, session.id, 1).state)
    home.chmod(0o755)

    assert read == "coding"
    assert refused.startswith("NotKept: Nothing was kept:")
    assert "readonly" in refused


def test_a_home_that_is_a_file_is_said(home, run):
    home.write_text("not a folder")
    done = run("start", "--track", "warm-up")

    assert done.returncode == 2
    assert "Nothing was kept" in done.stderr


def test_a_session_is_what_its_file_says_though_it_was_loaded_before(desk, begin, home, said):
    """The room's store has read the session, then another terminal writes it, then another file takes its place."""
    session = begin()
    desk.store.load(session.id)
    copy = (home / "interview.db").read_bytes()
    beside = Desk(store=Store(said.append), clock=desk.clock)
    control.save(beside, session.id, b"theirs\n")

    assert desk.store.load(session.id) == beside.store.load(session.id)

    (home / "interview.db").write_bytes(copy)
    control.submit(beside, session.id, b"mine\n")
    control.advance(beside, session.id)

    assert desk.store.load(session.id) == Store(said.append).load(session.id)
    assert desk.store.load(session.id).state == "follow_up"


def test_a_database_of_a_newer_version_is_left_alone(home, run):
    run("start", "--track", "warm-up")
    with sqlite3.connect(home / "interview.db") as db:
        db.execute("PRAGMA user_version = 99")
    done = run("status")

    assert done.returncode == 2
    assert "a newer attn-kata wrote it" in done.stderr


def test_a_database_that_stays_locked_is_said(desk, home, begin, said, monkeypatch):
    session = begin()
    monkeypatch.setattr("attn_kata.interview.storage.BUSY_SECONDS", 0.1)
    desk = Desk(store=Store(said.append), clock=desk.clock)
    blocker = sqlite3.connect(home / "interview.db", isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    with pytest.raises(NotKept, match="locked"):
        control.save(desk, session.id, RIGHT)
    blocker.execute("ROLLBACK")
    blocker.close()

    assert control.save(desk, session.id, RIGHT).kept[0] == digest_of(RIGHT)


def test_the_database_itself_holds_only_one_active_session(home, run):
    run("start", "--track", "warm-up")
    with sqlite3.connect(home / "interview.db") as db, pytest.raises(sqlite3.IntegrityError):
        db.execute(
            "INSERT INTO session (active, track, mode, stages, seed, folder) VALUES (1, 'x', 'mock', '[]', 0, 'x')"
        )


def test_no_command_but_run_and_review_imports_torch(home, folder):
    program = (
        "import sys; from attn_kata.cli import main; code = main(); "
        "print('torch' in sys.modules, file=sys.stderr); sys.exit(code)"
    )
    for arguments in (["--help"], ["list"], ["start", "--track", "warm-up"], ["next"], ["status"], ["submit"]):
        done = subprocess.run(
            [sys.executable, "-c", program, "interview", *arguments],
            cwd=folder,
            env={**os.environ, "ATTN_KATA_HOME": str(home)},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

        assert done.stderr.splitlines()[-1:] == ["False"], (arguments, done.stderr)
    assert Path(home / "interview.db").exists()
