"""The grader's end of the line, with somebody hostile at the other."""

from __future__ import annotations

import os
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_kata.grading.attempt_process import OUTPUT_KEPT, AttemptProcess, Endpoints
from attn_kata.properties.failures import AttemptDied, OutOfTime
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Call, Request

from .replies import answer, right

Peer = Callable[[socket.socket, int], None]
CALL = Call(name="f", args=(("tensor", 0),), tensors=(torch.ones(3),))


def ask(peer: Peer, request: Request = CALL, seconds: float = 0.5) -> tuple[wire.Reply, bytes]:
    """The reply to a request, and what was printed, where `peer(channel, output)` plays the attempt's process."""
    ours, theirs = socket.socketpair()
    output, printing = os.pipe()
    printed = bytearray()
    process = AttemptProcess(Endpoints(channel=ours, output=output), printed)

    def play() -> None:
        try:
            peer(theirs, printing)
        except (OSError, EOFError):
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


def asked(process: AttemptProcess, request: Request, seconds: float) -> wire.Reply:
    return process.reply(process.post(wire.encode_question(request)), seconds)


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

    def two_replies(nonce: int) -> bytes:
        return right(nonce) + right(nonce)

    playing = threading.Thread(target=answer, args=(theirs, two_replies))
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
    large = replace(CALL, tensors=(torch.zeros(1 << 22),))
    began = time.monotonic()
    with pytest.raises(OutOfTime):
        ask(lambda channel, _: time.sleep(0.8), large, 0.3)

    assert time.monotonic() - began < 2


def test_questions_and_replies_that_fill_both_directions_hold_nobody_up():
    large = replace(CALL, tensors=(torch.zeros(1 << 18),))
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

    tracemalloc.start()
    with pytest.raises(AttemptDied):
        ask(lambda channel, _: answer(channel, promise))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 << 20
