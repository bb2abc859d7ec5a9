"""What `run` takes for a new Python says what a new Python says."""

from __future__ import annotations

import json
import os
import signal
import socket

import pytest

from ..ready import HERE, Process

pytestmark = pytest.mark.skipif(not HERE, reason="no template here: everything starts a new Python")


@pytest.mark.parametrize(
    "arguments",
    [("list",), ("start", "sdpa"), ("start", "sd\udcffpa"), ("hint", "sdpa", "--number", "99"), ("--version",)],
    ids=["list", "start", "no Unicode", "usage", "version"],
)
def test_a_command_prints_and_ends_as_in_a_new_python(run, folder, arguments):
    seen = []
    for python in (None, ()):
        done = run(*arguments, python=python)
        seen.append((done.returncode, done.stdout, done.stderr, sorted(os.listdir(folder))))
        for file in folder.iterdir():
            file.unlink()

    assert seen[0] == seen[1]


def test_a_grading_is_that_of_an_engine_that_loaded_torch_itself(run, folder):
    (folder / "sdpa.py").write_text(
        "def scaled_dot_product_attention(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v\n"
    )
    reports = []
    for python in (None, ()):
        done = run("grade", "sdpa.py", "--json", python=python)
        report = json.loads(done.stdout)
        for one in (report, *report["findings"]):
            one.pop("seconds")
        reports.append((done.returncode, done.stderr, report))

    assert reports[0] == reports[1]
    assert [mistake["id"] for mistake in reports[0][2]["diagnosis"][0]["mistakes"]] == ["scale.missing"]


def test_who_is_killed_while_it_asks_does_not_end_the_template(run, ready):
    for begun in (b"", b"\x09\x00\x00\x00{"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.connect(str(ready._command))
            line.sendall(begun)

    assert run("--version").returncode == 0


def test_what_it_is_killed_by_is_told(ready, folder, tmp_path):
    reads, writes = os.pipe()
    with (tmp_path / "printed").open("wb") as printed:
        asked = {"arguments": ["interview", "--no-room"], "cwd": str(folder), "env": dict(os.environ)}
        engine = [str(ready._engine), ready._environment, ready._folders]
        waits = Process(ready._command, [reads, printed.fileno(), printed.fileno()], {**asked, "engine": engine})
    waits.kill()
    for descriptor in (reads, writes):
        os.close(descriptor)

    assert waits.wait(60) == -signal.SIGKILL
