"""Bursts of 20 keys into the screens of a hunt, a review, numbers, a derivation, a replay, and the host's prompt.

A burst takes one step at most; one that comes while the screen changes may take none, and is then sent again, as a
person would.
"""

from __future__ import annotations

import time

import pytest

from attn_kata.interview import control, moments
from attn_kata.interview.control import Desk
from attn_kata.interview.plans import Plan
from attn_kata.interview.rounds import TALK, Round

from .crash_script import SPOILED
from .terminal import Terminal

ENTER, HAND_IN, SKIP, TAB, UP, DOWN, RIGHT_KEY = "\r", "\x07", "\x0e", "\t", "\x1b[A", "\x1b[B", "\x1b[C"
TRIES, WAIT = 2, 25
ROUNDS = (
    Round(kind="hunt", kata="sdpa", minutes=20),
    Round(kind="review", kata="sdpa", minutes=10),
    Round(kind="napkin", kata="mha", minutes=10),
    Round(kind="derive", kata="linear_attention", minutes=10),
    TALK,
)


def until(one: Terminal, words: str, *keys: str) -> None:
    """Bursts until the words are on the screen."""
    for _ in range(TRIES):
        one.quiet(0.5)  # a gap between two bursts
        one.burst(*keys)
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            if words in one.text:
                return
            one.read()
    raise AssertionError(f"never came: {words}\n{one.text}")


@pytest.fixture
def real(desk):
    """The desk with the clock that the terminal has."""
    return Desk(store=desk.store, clock=moments.SystemClock())


def test_bursts_into_the_rounds_without_a_task_take_one_step_each(folder, home, real, ready):
    plan = Plan(name="every", title="", about="", rounds=ROUNDS)
    control.start(real, plan, mode="mock", folder=folder / "i", seed=3, spoiled={0: SPOILED, 1: SPOILED})
    one = Terminal(folder, home, ready=ready)
    try:
        one.shows("Start the clock")
        until(one, "Hand in", HAND_IN, "x")
        one.shows("scaled_dot_product_attention")
        file = real.store.active().file
        until(one, "zzz", "z")
        one.shows("│ saved │")

        one.child.send("w")
        file.write_bytes(b"# theirs\n")
        one.shows("changed on the disk")
        one.quiet(1.5)  # the dialog waits for a pause in the typing
        one.burst("m", "t", "b")
        end = time.monotonic() + 2 * WAIT
        while "changed on the disk" in one.text:
            assert time.monotonic() < end, one.text
            one.read()
        while b"zwdef scaled" not in file.read_bytes():  # mine was chosen, and nothing of the burst was typed
            assert time.monotonic() < end, file.read_bytes()
            one.read()
        assert b"# theirs\n" in [
            real.store.source(1, event.source) for event in real.store.active().events if event.source
        ]

        until(one, "Hand in stage 1", HAND_IN)
        until(one, "Enter goes on", "y", ENTER)
        until(one, "A colleague wrote this", ENTER, HAND_IN)
        session = real.store.active()
        assert (session.state, session.stage, session.answers) == ("follow_up", 1, {})
        until(one, "The answer is empty", HAND_IN, ENTER)
        assert real.store.active().stage == 1

        until(one, "Napkin", SKIP, ENTER)
        assert (real.store.active().stage, real.store.active().answers) == (2, {})
        until(one, "Question 2 of", "1", ENTER)
        assert len(real.store.active().answers) == 1
        count = len(real.store.active().places)
        for place in range(3, count + 1):
            until(one, f"Question {place} of", SKIP)
        assert len(real.store.active().answers) == 1

        until(one, "Derive: Linear attention", SKIP, "q")
        assert real.store.active().stage == 3
        until(one, "A model answer has these points", "x", HAND_IN)
        answered = len(real.store.active().answers)
        assert answered == 2
        until(one, "[", " ")
        until(one, "Question 2 of 2", HAND_IN, " ")
        session = real.store.active()
        assert (session.stage, len(session.answers), len(session.ticks)) == (3, 2, 1)
        assert b"Traceback" not in one.raw
    finally:
        one.close()


def test_bursts_into_the_list_of_plans_start_nothing_twice(folder, home, real, ready):
    one = Terminal(folder, home, ready=ready)
    try:
        one.shows("To the briefing")
        one.burst(UP, DOWN, "x", " ")
        until(one, "Start the clock", ENTER)
        assert len(real.store.sessions()) == 1
        assert b"Traceback" not in one.raw
    finally:
        one.close()


def test_bursts_into_a_replay_and_to_the_host(folder, home, run, real, ready):
    run("start", "--track", "warm-up")
    host = Terminal(folder, home, "host", ready=ready)
    try:
        host.shows("host>")
        host.burst("x", ENTER, " ", "\x02")
        host.child.send("\rstatus\r")
        host.shows("Your rubric:")
        host.burst(*"note burst\r")
        host.child.send("\rquit\r")
        assert host.ends() == 0
        assert b"Traceback" not in host.raw
    finally:
        host.close()
    assert 1 <= len(real.store.active().notes) <= 2
    run("next")
    run("submit")
    run("next")
    run("next", "--skip")

    one = Terminal(folder, home, "replay")
    try:
        one.shows("q leave")
        one.burst(" ", RIGHT_KEY, "+", "-", UP, ENTER, "\x1b[5~")
        one.burst("q", " ")
        assert one.ends() == 0
        assert b"Traceback" not in one.raw
    finally:
        one.close()
