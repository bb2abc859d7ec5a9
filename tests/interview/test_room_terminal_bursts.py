"""Bursts of 20 keys into every screen and dialog of a real terminal: each takes one step at most."""

from __future__ import annotations

from .terminal import Terminal

ENTER, ESC, HAND_IN, LEAVE, ASK, HELP, SKIP, SAVE = "\r", "\x1b", "\x07", "\x11", "\x02", "\x0f", "\x0e", "\x13"


def burst(one: Terminal, keys: str) -> None:
    one.burst(*keys)
    one.quiet(0.4)


def test_bursts_of_keys_take_one_step_each(folder, home, desk, ready):
    one = Terminal(folder, home, ready=ready)
    one.shows("To the briefing")
    burst(one, ENTER)
    one.shows("Start the clock")
    session = desk.store.active()
    assert (session.state, session.asked, session.id) == ("briefing", frozenset(), 1)

    burst(one, LEAVE + ENTER + "y")  # a dialog opens, and stays
    one.shows("Stay")
    burst(one, "s" + ENTER + HAND_IN)
    one.shows("Start the clock")
    burst(one, HAND_IN)
    one.shows("Hand in")
    assert desk.store.active().state == "coding"

    one.child.send("\x1b[1;5H")  # Ctrl+Home
    one.shows("# attn-kata: sdpa")
    burst(one, "abcdefghijklmnopqrst")
    one.shows("abcdefghijklmnopqrst# attn-kata: sdpa")
    for opens, what, answers in (
        (ASK + "1", "Ask in your own words", ESC),
        (HELP + ENTER, "EVERYWHERE", "q"),
        (LEAVE, "Leave?", "s" + "e"),
        (HAND_IN + "n", "Hand in stage 1", "n" + "y"),
    ):
        burst(one, opens)
        one.shows(what)
        burst(one, answers)
        one.shows("abcdefghijklmnopqrst# attn-kata: sdpa")
    burst(one, SAVE + HAND_IN)
    one.shows("Hand in stage 1")
    burst(one, ENTER)
    one.shows("The clock still runs.")
    session = desk.store.active()
    assert session.state == "submitted"
    assert desk.store.source(1, session.finals[0]).startswith(b"abcdefghijklmnopqrst# attn-kata: sdpa")

    burst(one, ENTER + HAND_IN)
    one.shows("2/3 Causal mask")
    one.quiet(0.5)
    assert (desk.store.active().state, desk.store.active().stage) == ("coding", 1)
    for place, says in ((1, "3/3 Multi-head"), (2, "Question 1 of")):
        burst(one, HAND_IN)
        one.shows(f"Hand in stage {place + 1}")
        burst(one, "y" + ENTER)
        one.shows("Enter goes on")
        burst(one, ENTER)
        one.shows(says)
    session = desk.store.active()
    assert (session.state, len(session.answers)) == ("follow_up", 0)

    count = len(session.follow_ups)
    for place in range(2, count + 1):
        burst(one, SKIP)
        one.shows(f"Question {place} of {count}")
    burst(one, SKIP + ENTER)
    one.shows("Close the interview")
    burst(one, ENTER + "y" + ESC)
    assert desk.store.active().state == "review"
    burst(one, HAND_IN)
    assert one.ends() == 0
    assert b"Traceback" not in one.raw
    assert [session.state for session in desk.store.sessions()] == ["closed"]
