"""The connection to the attempt: a fresh process after each death, what is blocked in it, and what is asked ahead."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from attn_kata.grading import connection
from attn_kata.grading.attempt_process import Endpoints
from attn_kata.grading.connection import MAX_DEATHS, Connection, Ended
from attn_kata.properties.failures import AttemptDied
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Block, Call, Load, Request

from .replies import answer, read_request, reply_of, right

CALL = Call(name="f", args=(("tensor", 0),), tensors=(torch.ones(3),))


class Scripted:
    """A launcher of processes that answer as scripted: each script takes the nonce and gives a reply, or raises."""

    def __init__(self, *scripts: Callable[[int], bytes]) -> None:
        self.scripts = list(scripts)
        self.started = 0
        self.loads = True
        self.requests: list[Request] = []  # what was asked after the load, of every process

    def start(self) -> Endpoints:
        self.started += 1
        ours, theirs = socket.socketpair()
        output, printing = os.pipe()
        os.close(printing)

        def play() -> None:
            theirs.sendall(wire.encode_reply(0, wire.OK, ("1", "7", "1")))
            try:
                answer(
                    theirs,
                    lambda nonce: wire.encode_reply(
                        nonce, wire.OK if self.loads else wire.RAISED, () if self.loads else ("E", "")
                    ),
                )
                while self.scripts:
                    request, nonce = read_request(theirs)
                    self.requests.append(request)
                    theirs.sendall(self.scripts.pop(0)(nonce))
            except (OSError, EOFError):
                pass
            theirs.close()

        threading.Thread(target=play, daemon=True).start()
        return Endpoints(channel=ours, output=output)

    def end(self, *, patient: bool) -> Ended:
        return Ended(how="it crashed (SIGSEGV)")


def connected(launcher: Scripted, **knobs: float) -> Connection:
    load = Load(filename="attempt.py", tensors=(torch.zeros(1, dtype=torch.uint8),))
    return Connection(launcher, load, call_seconds=knobs.get("call_seconds", 0.5), deadline=time.monotonic() + 20)


def test_want_of_memory_is_a_death_with_its_reason():
    with pytest.raises(AttemptDied, match="it ran out of memory"):
        connected(Scripted(reply_of(wire.NO_MEMORY, ("MemoryError", "")))).ask(CALL)


def test_a_death_says_how_the_process_ended_and_the_next_question_gets_a_fresh_one():
    launcher = Scripted()
    line = connected(launcher)
    with pytest.raises(AttemptDied, match="SIGSEGV"):
        line.ask(CALL)
    launcher.scripts = [right]

    assert line.ask(CALL).status == wire.OK
    assert (launcher.started, line.generation, line.deaths) == (2, 2, 1)


def test_after_three_deaths_nothing_is_started_any_more():
    launcher = Scripted()
    line = connected(launcher)
    for _ in range(MAX_DEATHS):
        with pytest.raises(AttemptDied):
            line.ask(CALL)
    with pytest.raises(AttemptDied, match="died 3 times"):
        line.ask(CALL)

    assert launcher.started == MAX_DEATHS


def test_a_source_that_no_longer_loads_is_a_death():
    launcher = Scripted()
    launcher.loads = False

    with pytest.raises(AttemptDied, match="a second time"):
        connected(launcher).ask(CALL)


@pytest.mark.parametrize("reply", [reply_of(wire.OK), reply_of(wire.OK, ("text",), 1), reply_of(wire.RAISED)])
def test_a_reply_that_answers_something_else_is_the_attempts_end(reply):
    line = connected(Scripted(reply))

    with pytest.raises(AttemptDied, match="does not answer the request"):
        line.ask(CALL)
    assert line.deaths == 1


def test_what_is_blocked_is_blocked_in_every_fresh_process_before_it_is_asked_anything():
    launcher = Scripted(reply_of(wire.OK), lambda nonce: b"")
    line = connected(launcher)
    line.block(("attention", "softmax"))
    with pytest.raises(AttemptDied):
        line.ask(CALL)
    launcher.scripts = [reply_of(wire.OK), right]
    line.ask(CALL)

    block = Block(words=("attention", "softmax"))
    assert [request for request in launcher.requests if isinstance(request, Block)] == [block, block]
    assert isinstance(launcher.requests[-1], Call)


# ---------------------------------------------------------------------------------------------- asked ahead of time

CALLS = [replace(CALL, seed=number) for number in range(8)]
QUESTIONS = [wire.encode_question(call) for call in CALLS]


def numbered(*numbers: int) -> list[Callable[[int], bytes]]:
    """Scripts that answer with these numbers, one each."""
    return [
        lambda nonce, number=number: wire.encode_reply(nonce, wire.OK, (), ((torch.tensor(float(number)), 0),))
        for number in numbers
    ]


def told(line: Connection, place: int) -> float:
    data = line.ask(CALLS[place]).tensors[0].data
    assert data is not None
    return data.item()


def started(*scripts: Callable[[int], bytes], **knobs: float) -> tuple[Connection, Scripted]:
    launcher = Scripted(*scripts)
    line = connected(launcher, **knobs)
    line.start()
    return line, launcher


def test_what_is_asked_ahead_is_answered_once_and_in_its_order():
    line, launcher = started(*numbered(0, 1, 2, 3))
    line.prefetch(QUESTIONS[:3])
    assert [told(line, 0), told(line, 1)] == [0, 1]
    line.prefetch(QUESTIONS[2:4])  # its first was asked ahead before

    assert [told(line, 2), told(line, 3)] == [2, 3]
    assert (launcher.scripts, line.deaths, launcher.started) == ([], 0, 1)


def test_another_question_than_the_foreseen_one_gets_its_own_reply():
    line, _ = started(*numbered(0, 1, 2, 7))
    line.prefetch(QUESTIONS[:3])

    assert [told(line, 0), told(line, 7)] == [0, 7]


def test_what_was_asked_ahead_for_a_case_that_ended_early_is_dropped():
    line, launcher = started(*numbered(0, 1, 2, 4, 5))
    line.prefetch(QUESTIONS[:3])
    assert told(line, 0) == 0
    line.prefetch(QUESTIONS[4:6])

    assert [told(line, 4), told(line, 5)] == [4, 5]
    assert (line.deaths, launcher.started) == (0, 1)


def hanging(_: int) -> bytes:
    time.sleep(3)
    return b""


@pytest.mark.parametrize("ending", [hanging, lambda nonce: b""], ids=["hangs", "dies"])
def test_one_that_hangs_or_dies_where_nobody_asked_is_replaced_and_not_told(monkeypatch, ending):
    monkeypatch.setattr(connection, "HUNG_SECONDS", 0.2)
    line, launcher = started(*numbered(0), ending)
    line.prefetch(QUESTIONS[:2])
    assert told(line, 0) == 0
    began = time.monotonic()
    line.prefetch(QUESTIONS[4:6])
    launcher.scripts = numbered(4, 5)

    assert [told(line, 4), told(line, 5)] == [4, 5]
    assert (line.deaths, line.generation) == (0, 2)
    assert time.monotonic() - began < 2


def test_one_that_dies_where_it_was_asked_ahead_dies_when_that_is_asked():
    line, _ = started(*numbered(0), lambda nonce: b"")
    line.prefetch(QUESTIONS[:3])
    assert told(line, 0) == 0

    with pytest.raises(AttemptDied):
        line.ask(CALLS[1])
    assert line.deaths == 1
