"""Partner mode: two terminals, one session. The interviewer sees the hidden properties; the ratings are in the scorecard."""

from __future__ import annotations

import os
import time

import pexpect
import pytest

from attn_kata.interview import words

from .conftest import RIGHT
from .terminal import Terminal


def test_an_interviewer_and_a_candidate_at_one_session(run, home, folder, desk, ready):
    assert "Nobody hosts an interview yet" in run("sit").stderr
    python, *arguments = ready.face("interview", "host", "--plan", "warm-up")
    host = pexpect.spawn(
        python,
        arguments,
        cwd=str(folder),
        encoding="utf-8",
        timeout=40,
        dimensions=(40, 120),
        env={**os.environ, "ATTN_KATA_HOME": str(home), "TERM": "xterm"},
    )
    host.expect("host> ")
    second = run("host")
    assert (second.returncode, "Another host is at interview 1" in second.stderr) == (2, True)
    assert "To be typed" not in run("sit", lines="q\n").stdout  # in a pipe: the prompt
    run("ask", "are the inputs always 4d?")
    run("next")
    file = desk.store.active().file
    file.write_bytes(RIGHT.replace(b"** 0.5", b"** 1.0"))
    run("status")
    host.expect(r"asked question \d: are the inputs always 4d\?")
    host.expect(r"\d+ of \d+ core properties hold; fails: .*values")
    host.sendline("look")
    host.expect("core properties hold; fails")
    host.sendline("code")
    host.expect(r"\*\* 1\.0")
    host.sendline("hint")
    host.expect("Given: ")
    assert "Hint of your interviewer: " in run("status").stdout
    for typed, said in (
        ("rate dancing 4", "'dancing' is not a line of the rubric"),
        ("rate code 5", "'5' is not a score"),
        ("rate code 2 forgot the root", "code: 2 of 4"),
        ("note calm, asks before writing", "Noted"),
        ("questions", "The candidate should ask:"),
        ("dance", "'dance' is not a command here"),
        ("quit", "The session goes on"),
    ):
        host.sendline(typed)
        host.expect(said)
    host.expect(pexpect.EOF)
    host.close()
    file.write_bytes(RIGHT)
    run("submit")
    run("next")
    shown = run("next", "--skip").stdout

    assert host.exitstatus == 0
    assert "From your interviewer\n  code: 2 of 4. forgot the root\n  Note: calm, asks before writing" in shown
    assert "mock, 1 hint" in shown
    assert "the interviewer gave hint 1" in shown


def test_the_host_is_read_on_the_narrowest_terminal(folder, home, ready):
    one = Terminal(folder, home, "host", "--plan", "warm-up", ready=ready, rows=12, columns=40)
    try:
        one.shows("attn-kata interview sit")  # what to say to the candidate is not scrolled away by the help
        one.shows("host> ")
        one.child.send(
            "questions\rstatus\rhint\rrate dancing 4\r"
        )  # typed ahead: the prompt is not before what is said
        for shown in (
            "Name\n    properties, not values.",
            "The candidate's next step: ",
            "Only the candidate does",
            "is not a line of the rubric",
        ):
            begun = time.monotonic()
            while shown not in one.raw.decode(errors="ignore").replace("\r", ""):
                assert one.read(), one.text
                assert time.monotonic() < begun + 60, one.text
        said = one.raw.decode().replace("\r", "").splitlines()
        assert [line for line in said if len(line) > 40] == []
        assert "    questions to ask, with their" in "\n".join(said)
    finally:
        one.close()


@pytest.mark.parametrize(
    ("line", "width", "wrapped"),
    [
        ("a short one", 20, "a short one"),
        ("  look    what is hidden here", 24, "  look    what is hidden\n          here"),
        ("  rate LINE 1-4   your own score", 24, "  rate LINE 1-4\n      your own score"),
        ("   12      return attention(q)", 24, "   12      return\n           attention(q)"),
        ("  - one point of some", 16, "  - one point of\n    some"),
        ("a sentence goes on\n\nx", 12, "a sentence\ngoes on\n\nx"),
        ("/a/path/of/no/breaks", 12, "/a/path/of/no/breaks"),
    ],
)
def test_long_lines_are_wrapped_at_words_and_under_their_column(line, width, wrapped):
    assert words.laid_out(line, width) == wrapped
