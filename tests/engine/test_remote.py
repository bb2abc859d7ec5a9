"""The grader's end of the line, with somebody hostile at the other."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_kata.grading import connection as remote_module
from attn_kata.grading.attempt_process import OUTPUT_KEPT, AttemptProcess, Endpoints
from attn_kata.grading.connection import MAX_DEATHS, Attempt, Ended
from attn_kata.properties.failures import AttemptDied, OutOfTime
from attn_kata.protocol import wire

Peer = Callable[[socket.socket, int], None]
CALL = wire.Request(op="call", fields={"name": "f", "args": [{"tensor": 0}]}, tensors=(torch.ones(3),))


def ask(peer: Peer, request: wire.Request = CALL, seconds: float = 0.5) -> tuple[wire.Reply, bytes]:
    """The reply to a request, and what was printed, where `peer(channel, output)` plays the attempt's process."""
    ours, theirs = socket.socketpair()
    output, printing = os.pipe()
    printed = bytearray()
    process = AttemptProcess(Endpoints(channel=ours, output=output), printed)

    def play() -> None:
        try:
            peer(theirs, printing)
        except OSError:
            pass  # the grader hung up
        finally:
            theirs.close()
            os.close(printing)

    playing = threading.Thread(target=play, daemon=True)
    playing.start()
    try:
        return asked(process, request, seconds), bytes(printed)
    finally:
        process.close()
        playing.join(5)
        assert not playing.is_alive()


def asked(process: AttemptProcess, request: wire.Request, seconds: float) -> wire.Reply:
    return process.reply(process.post(wire.encode_question(request)), seconds)


def answer(channel: socket.socket, reply: Callable[[int], bytes]) -> None:
    """Read the request, and send `reply(nonce)`."""

    def read(count: int) -> bytearray:
        content = bytearray()
        while len(content) < count:
            content += channel.recv(count - len(content))
        return content

    _, nonce = wire.decode_request(read)
    channel.sendall(reply(nonce))


def right(nonce: int) -> bytes:
    return wire.encode_reply(nonce, wire.OK, (), ((torch.arange(3.0), 0),))


def test_a_right_reply_comes_through_with_its_prints():
    def peer(channel, output):
        os.write(output, b"hello")
        answer(channel, right)

    reply, _ = ask(peer)

    assert reply.tensors[0].data is not None
    assert reply.tensors[0].data.tolist() == [0, 1, 2]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_garbage_ends_the_conversation(content):
    with pytest.raises(AttemptDied):
        ask(lambda channel, _: channel.sendall(content))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 39))
def test_a_truncated_reply_ends_the_conversation(kept):
    with pytest.raises(AttemptDied):
        ask(lambda channel, _: answer(channel, lambda nonce: right(nonce)[: kept % (len(right(nonce)) - 1)]))


@pytest.mark.parametrize("nonce", [0, 1, 2**63])
def test_a_reply_to_another_question_is_none(nonce):
    def peer(channel, _):
        channel.sendall(right(nonce))
        channel.recv(1)  # and stays until the question is there

    with pytest.raises(AttemptDied, match="not a reply"):
        ask(peer)


def test_an_earlier_reply_does_not_answer_the_next_question():
    ours, theirs = socket.socketpair()
    output, printing = os.pipe()
    process = AttemptProcess(Endpoints(channel=ours, output=output), bytearray())

    def twice(nonce: int) -> bytes:
        return right(nonce) + right(nonce)

    playing = threading.Thread(target=answer, args=(theirs, twice))
    playing.start()
    asked(process, CALL, 1)
    playing.join()

    with pytest.raises(AttemptDied, match="not a reply"):
        asked(process, CALL, 1)
    process.close()
    theirs.close()
    os.close(printing)


def timed(peer: Peer, seconds: float = 0.3) -> float:
    began = time.monotonic()
    with pytest.raises(OutOfTime):
        ask(peer, seconds=seconds)
    return time.monotonic() - began


def test_silence_ends_at_the_deadline():
    assert timed(lambda channel, _: time.sleep(0.8)) < 2


def test_a_dribbling_reply_ends_at_the_deadline():
    def peer(channel, _):
        def dribble(nonce):
            for byte in wire.REPLY.pack(wire.REPLY_MAGIC, nonce, 0, 512, 0):
                channel.sendall(bytes([byte]))
                time.sleep(0.05)
            return b""

        answer(channel, dribble)

    assert timed(peer) < 3


def test_a_flood_of_prints_does_not_hide_the_deadline():
    def peer(_, output):
        until = time.monotonic() + 1
        while time.monotonic() < until:
            os.write(output, b"x" * 65536)

    assert timed(peer) < 3


def test_prints_are_kept_up_to_their_cap():
    def peer(channel, output):
        for _ in range(8):
            os.write(output, b"y" * 60000)
        answer(channel, right)

    _, printed = ask(peer, seconds=5)

    assert len(printed) == OUTPUT_KEPT


def test_a_peer_that_does_not_read_ends_at_the_deadline():
    large = wire.Request(op="call", fields=CALL.fields, tensors=(torch.zeros(1 << 22),))
    began = time.monotonic()
    with pytest.raises(OutOfTime):
        ask(lambda channel, _: time.sleep(0.8), large, 0.3)

    assert time.monotonic() - began < 2


def test_questions_and_replies_that_fill_both_directions_hold_nobody_up():
    large = wire.Request(op="call", fields=CALL.fields, tensors=(torch.zeros(1 << 18),))
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 12)
    process = AttemptProcess(Endpoints(channel=ours, output=None), bytearray())

    def play() -> None:
        for _ in range(5):
            answer(theirs, lambda nonce: wire.encode_reply(nonce, wire.OK, (), ((large.tensors[0], 0),)))

    playing = threading.Thread(target=play, daemon=True)
    playing.start()
    numbers = [process.post(wire.encode_question(large)) for _ in range(5)]

    assert [process.reply(number, 5).tensors[0].shape for number in numbers] == [(1 << 18,)] * 5
    playing.join(5)
    process.close()
    theirs.close()


def test_a_promised_size_costs_no_memory():
    def promise(nonce: int) -> bytes:
        shape = wire.DESCRIPTOR.pack(0, 1, 0, 0, wire.MAX_REPLY_BYTES // 4, *[0] * 7)
        return wire.REPLY.pack(wire.REPLY_MAGIC, nonce, 0, 0, 1) + shape + b"only this"

    import tracemalloc

    tracemalloc.start()
    with pytest.raises(AttemptDied):
        ask(lambda channel, _: answer(channel, promise))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 << 20


# ----------------------------------------------------------------------------------- what is an answer to what was asked


class Scripted:
    """A supply of processes that answer as scripted: each script takes the nonce and gives a reply, or raises."""

    def __init__(self, *scripts: Callable[[int], bytes]) -> None:
        self.scripts = list(scripts)
        self.started = 0
        self.loads = True

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
                    answer(theirs, self.scripts.pop(0))
            except (OSError, EOFError):
                pass
            theirs.close()

        threading.Thread(target=play, daemon=True).start()
        return Endpoints(channel=ours, output=output)

    def end(self, *, patient: bool) -> Ended:
        return Ended(how="it crashed (SIGSEGV)")


def attempt(supply: Scripted, **knobs: float) -> Attempt:
    load = wire.Request(op="load", fields={}, tensors=(torch.zeros(1, dtype=torch.uint8),))
    return Attempt(supply, load, call_seconds=knobs.get("call_seconds", 0.5), deadline=time.monotonic() + 20)


def reply_of(status: int, texts: tuple[str, ...] = (), count: int = 0, flags: int = 0) -> Callable[[int], bytes]:
    return lambda nonce: wire.encode_reply(nonce, status, texts, ((torch.arange(3.0), flags),) * count)


GRADIENTS = wire.Request(op="call", fields={**CALL.fields, "cotangent": 1}, tensors=(torch.ones(3), torch.ones(3)))
AFTER = wire.Request(op="call", fields={**CALL.fields, "inputs_after": True}, tensors=CALL.tensors)
BUILD = wire.Request(op="build", fields={"name": "M", "module": 1, "args": []})
MIXING = wire.Request(op="call", fields={**CALL.fields, "mixing": {"over": [3], "answer": None}}, tensors=CALL.tensors)
WEIGHTS = wire.Request(op="load_weights", fields={"module": 1, "names": []})
TRACE = wire.Request(op="trace", fields={**CALL.fields, "weights": []}, tensors=CALL.tensors)
REPLAY = wire.Request(op="replay", fields={"args": CALL.fields["args"], "inputs_after": True}, tensors=CALL.tensors)


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        (CALL, reply_of(wire.OK)),
        (CALL, reply_of(wire.OK, count=2)),
        (CALL, reply_of(wire.OK, ("text",), 1)),
        (CALL, reply_of(wire.OK, count=1, flags=wire.ABSENT)),
        (CALL, reply_of(wire.RAISED)),
        (CALL, reply_of(wire.RAISED, ("E", ""), 1)),
        (CALL, reply_of(wire.BAD_RESULT)),
        (GRADIENTS, reply_of(wire.OK, count=1)),
        (GRADIENTS, reply_of(wire.OK, count=3)),
        (AFTER, reply_of(wire.OK, count=1)),
        (BUILD, reply_of(wire.OK, ("a", "b"), 1, wire.ABSENT)),
        (BUILD, reply_of(wire.OK, ("a", "a"), 2, wire.ABSENT)),
        (BUILD, reply_of(wire.OK, ("a",), 1)),
        (MIXING, reply_of(wire.OK)),
        (MIXING, reply_of(wire.OK, count=2)),
        (MIXING, reply_of(wire.OK, (), 3, wire.ABSENT)),
        (WEIGHTS, reply_of(wire.OK, count=1)),
        (TRACE, reply_of(wire.OK, count=0)),
        (TRACE, reply_of(wire.OK, count=1)),  # of numbers that are no bytes
        (REPLAY, reply_of(wire.OK, count=1)),
        (REPLAY, reply_of(wire.OK, ("op aten::mm",), 2)),
    ],
)
def test_a_reply_that_answers_something_else_is_the_attempts_end(request_, reply):
    remote = attempt(Scripted(reply))

    with pytest.raises(AttemptDied, match="does not answer the request"):
        remote.ask(request_)
    assert remote.deaths == 1


def test_want_of_memory_is_a_death_with_its_reason():
    with pytest.raises(AttemptDied, match="it ran out of memory"):
        attempt(Scripted(reply_of(wire.NO_MEMORY, ("MemoryError", "")))).ask(CALL)


def test_a_death_says_how_the_process_ended_and_the_next_question_gets_a_fresh_one():
    supply = Scripted()
    remote = attempt(supply)
    with pytest.raises(AttemptDied, match="SIGSEGV"):
        remote.ask(CALL)
    supply.scripts = [right]

    assert remote.ask(CALL).status == wire.OK
    assert (supply.started, remote.generation, remote.deaths) == (2, 2, 1)


def test_after_three_deaths_nothing_is_started_any_more():
    supply = Scripted()
    remote = attempt(supply)
    for _ in range(MAX_DEATHS):
        with pytest.raises(AttemptDied):
            remote.ask(CALL)
    with pytest.raises(AttemptDied, match="died 3 times"):
        remote.ask(CALL)

    assert supply.started == MAX_DEATHS


def test_a_source_that_no_longer_loads_is_a_death():
    supply = Scripted()
    supply.loads = False

    with pytest.raises(AttemptDied, match="a second time"):
        attempt(supply).ask(CALL)


def test_what_is_recorded_is_asked_again_unrecorded():
    recorded = wire.Request(op="call", fields={**CALL.fields, "record": True}, tensors=CALL.tensors)
    same, other = (
        reply_of(wire.OK, ("op aten::mm",), 1),
        lambda nonce: wire.encode_reply(nonce, 0, (), ((torch.zeros(3), 0),)),
    )

    assert attempt(Scripted(same, right)).ask(recorded).texts == ("op aten::mm",)
    assert attempt(Scripted(same, other)).ask(recorded).status == wire.BAD_RESULT


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.sampled_from([CALL, GRADIENTS, AFTER, BUILD, MIXING, WEIGHTS, TRACE, REPLAY]),
    st.integers(0, 5),
    st.lists(st.text(max_size=3), max_size=3),
    st.lists(st.tuples(st.sampled_from(wire.DTYPES), st.integers(0, 2), st.integers(0, 3)), max_size=4),
)
def test_judging_an_answer_never_raises(request_, status, texts, tensors):
    parts = tuple(
        wire.TensorReply(
            shape=(size,), dtype=dtype, device=flags % 3, shares_input=False,
            data=None if flags & 1 else torch.zeros(size, dtype=dtype),
        )
        for dtype, size, flags in tensors
    )  # fmt: skip
    reply = wire.Reply(status=status, texts=tuple(texts), tensors=parts)

    assert protocol.answers(request_, reply) in (True, False)
    assert protocol.same_tensors(reply, reply) or any(part.data is None for part in parts)


# ------------------------------------------------------------------------------------------------- asked ahead of time

CALLS = [wire.Request(op="call", fields={**CALL.fields, "seed": number}, tensors=CALL.tensors) for number in range(8)]
QUESTIONS = [wire.encode_question(call) for call in CALLS]


def numbered(*numbers: int) -> list[Callable[[int], bytes]]:
    """Scripts that answer with these numbers, one each."""
    return [
        lambda nonce, number=number: wire.encode_reply(nonce, wire.OK, (), ((torch.tensor(float(number)), 0),))
        for number in numbers
    ]


def told(remote: Attempt, place: int) -> float:
    data = remote.ask(CALLS[place]).tensors[0].data
    assert data is not None
    return data.item()


def started(*scripts: Callable[[int], bytes], **knobs: float) -> tuple[Attempt, Scripted]:
    supply = Scripted(*scripts)
    remote = attempt(supply, **knobs)
    remote.start()
    return remote, supply


def test_what_is_asked_ahead_is_answered_once_and_in_its_order():
    remote, supply = started(*numbered(0, 1, 2, 3))
    remote.prefetch(QUESTIONS[:3])
    assert [told(remote, 0), told(remote, 1)] == [0, 1]
    remote.prefetch(QUESTIONS[2:4])  # its first was asked ahead before

    assert [told(remote, 2), told(remote, 3)] == [2, 3]
    assert (supply.scripts, remote.deaths, supply.started) == ([], 0, 1)


def test_another_question_than_the_foreseen_one_gets_its_own_reply():
    remote, _ = started(*numbered(0, 1, 2, 7))
    remote.prefetch(QUESTIONS[:3])

    assert [told(remote, 0), told(remote, 7)] == [0, 7]


def test_what_was_asked_ahead_for_a_case_that_ended_early_is_dropped():
    remote, supply = started(*numbered(0, 1, 2, 4, 5))
    remote.prefetch(QUESTIONS[:3])
    assert told(remote, 0) == 0
    remote.prefetch(QUESTIONS[4:6])

    assert [told(remote, 4), told(remote, 5)] == [4, 5]
    assert (remote.deaths, supply.started) == (0, 1)


def hanging(_: int) -> bytes:
    time.sleep(3)
    return b""


@pytest.mark.parametrize("ending", [hanging, lambda nonce: b""], ids=["hangs", "dies"])
def test_one_that_hangs_or_dies_where_nobody_asked_is_replaced_and_not_told(monkeypatch, ending):
    monkeypatch.setattr(remote_module, "HUNG_SECONDS", 0.2)
    remote, supply = started(*numbered(0), ending)
    remote.prefetch(QUESTIONS[:2])
    assert told(remote, 0) == 0
    began = time.monotonic()
    remote.prefetch(QUESTIONS[4:6])
    supply.scripts = numbered(4, 5)

    assert [told(remote, 4), told(remote, 5)] == [4, 5]
    assert (remote.deaths, remote.generation) == (0, 2)
    assert time.monotonic() - began < 2


def test_one_that_dies_where_it_was_asked_ahead_dies_when_that_is_asked():
    remote, _ = started(*numbered(0), lambda nonce: b"")
    remote.prefetch(QUESTIONS[:3])
    assert told(remote, 0) == 0

    with pytest.raises(AttemptDied):
        remote.ask(CALLS[1])
    assert remote.deaths == 1
