"""Replies are somebody else's bytes: whatever they are, decoding ends, costs little and raises nothing but WireError."""

from __future__ import annotations

import struct
import time
import tracemalloc

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attn_kata.protocol import wire
from attn_kata.protocol.messages import Call

NONCE = 77
LIMIT = 1 << 20
quick = settings(max_examples=300, deadline=None, derandomize=True)


class Ended(Exception):
    """There are no more bytes: in a grading, a deadline or the end of the process."""


class Bytes:
    """A sender of these bytes and no more, who counts what is asked of it."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0
        self.largest = 0

    def read(self, count: int) -> bytearray:
        self.largest = max(self.largest, count)
        part = self.content[self.place : self.place + count]
        self.place += len(part)
        if len(part) < count:
            raise Ended
        return bytearray(part)


def decode(content: bytes) -> wire.Reply | None:
    """The reply, or None where there is none; fails for another exception, and for a buffer beyond what is allowed."""
    sender = Bytes(content)
    try:
        return wire.decode_reply(sender.read, NONCE, LIMIT)
    except (wire.WireError, Ended):
        return None
    finally:
        assert sender.largest <= max(LIMIT, wire.MAX_TEXT)


def header(status: int = wire.OK, texts: int = 0, tensors: int = 0) -> bytes:
    return wire.REPLY.pack(wire.REPLY_MAGIC, NONCE, status, texts, tensors)


dtypes = st.sampled_from(wire.DTYPES)
shapes = st.lists(st.integers(0, 4), max_size=5)
replies = st.builds(
    lambda texts, tensors, status: wire.encode_reply(
        NONCE, status, tuple(texts), tuple((torch.ones(shape, dtype=dtype), flags) for dtype, shape, flags in tensors)
    ),
    st.lists(st.text(max_size=20), max_size=4),
    st.lists(st.tuples(dtypes, shapes, st.integers(0, 3)), max_size=4),
    st.integers(0, wire.REFUSED),
)


@quick
@given(st.binary(max_size=400))
@example(b"")
@example(header()[:-1])
def test_arbitrary_bytes_are_no_reply(content):
    decode(content)


@quick
@given(st.binary(max_size=400), st.integers(0, 600), st.integers(0, 600))
def test_arbitrary_bytes_behind_a_right_header_are_survived(content, texts, tensors):
    decode(header(texts=texts, tensors=tensors) + content)


@quick
@given(replies, st.data())
def test_mutated_replies_are_survived(content, data):
    mutated = bytearray(content)
    for _ in range(data.draw(st.integers(1, 6))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.sampled_from((0, 1, 2, 127, 128, 255)))
    decode(bytes(mutated))


@quick
@given(replies, st.data())
def test_truncated_replies_end_with_the_bytes(content, data):
    assert decode(content[: data.draw(st.integers(0, len(content) - 1))]) is None


@quick
@given(replies)
def test_what_was_encoded_is_decoded_and_nothing_is_left(content):
    sender = Bytes(content)

    assert isinstance(wire.decode_reply(sender.read, NONCE), wire.Reply)
    assert sender.place == len(content)


@quick
@given(
    st.lists(
        st.tuples(
            st.integers(0, 12),
            st.integers(0, 12),
            st.integers(0, 3),
            st.integers(0, 4),
            st.lists(
                st.sampled_from((0, 1, 3, 1 << 20, 1 << 31, (1 << 31) + 1, 1 << 62, (1 << 64) - 1)),
                min_size=8,
                max_size=8,
            ),
        ),
        max_size=4,
    )
)
def test_absurd_descriptors_allocate_nothing(described):
    content = header(tensors=len(described))
    for code, rank, device, flags, sizes in described:
        content += wire.DESCRIPTOR.pack(code, rank, device, flags, *sizes)
    tracemalloc.start()
    try:
        decode(content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 2 * LIMIT


@pytest.mark.parametrize(
    "content",
    [
        wire.REPLY.pack(b"AKr2", NONCE, 0, 0, 0),
        wire.REPLY.pack(wire.REPLY_MAGIC, NONCE + 1, 0, 0, 0),
        wire.REPLY.pack(wire.REPLY_MAGIC, NONCE, wire.REFUSED + 1, 0, 0),
        header(texts=513),
        header(tensors=513),
        header(texts=0xFFFFFFFF, tensors=0xFFFFFFFF),
        header(texts=1) + wire.LENGTH.pack(wire.MAX_TEXT + 1),
        header(texts=5) + wire.LENGTH.pack(wire.MAX_TEXT) * 5,
        header(tensors=1) + wire.DESCRIPTOR.pack(len(wire.DTYPES), 0, 0, 0, *[0] * 8),
        header(tensors=1) + wire.DESCRIPTOR.pack(0, 9, 0, 0, *[0] * 8),
        header(tensors=1) + wire.DESCRIPTOR.pack(0, 1, 3, 0, *[0] * 8),
        header(tensors=1) + wire.DESCRIPTOR.pack(0, 1, 0, 4, *[0] * 8),
        header(tensors=1) + wire.DESCRIPTOR.pack(0, 2, 0, 0, 0, 1 << 62, *[0] * 6),
        header(tensors=1) + wire.DESCRIPTOR.pack(0, 8, 0, 0, 0, *[1 << 31] * 7),
        header(tensors=1) + wire.DESCRIPTOR.pack(0, 8, 0, wire.ABSENT, *[1 << 31] * 8),
        header(tensors=1) + wire.DESCRIPTOR.pack(0, 1, 0, 0, 2, 7, *[0] * 6),
        header(tensors=1) + wire.DESCRIPTOR.pack(0, 1, 0, 0, LIMIT, *[0] * 7),
        header(tensors=2) + wire.DESCRIPTOR.pack(8, 1, 0, 0, LIMIT - 1, *[0] * 7) * 2,
        header(tensors=1) + wire.DESCRIPTOR.pack(9, 1, 0, 0, 2, *[0] * 7) + b"\x01\x02",
    ],
)
def test_what_is_not_one_of_ours_is_named_so(content):
    with pytest.raises(wire.WireError):
        wire.decode_reply(Bytes(content).read, NONCE, LIMIT)


def test_a_promise_costs_no_time():
    began = time.monotonic()
    for size in (1 << 31, 1 << 62, (1 << 64) - 1):
        decode(header(tensors=512) + wire.DESCRIPTOR.pack(0, 1, 0, 0, size, *[0] * 7) * 512)
        decode(header(texts=512) + struct.pack("<I", size & 0xFFFFFFFF) * 512)

    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(1).expand(1 << 20, 1 << 20),
        torch.empty(0, 1 << 40),
        torch.empty(1 << 25, dtype=torch.float64, device="cpu").expand(1 << 25),
        torch.zeros(1, dtype=torch.complex64),
        torch.zeros((1,) * 9),
    ],
)
def test_what_a_reply_cannot_carry_is_refused_before_it_is_copied(tensor):
    with pytest.raises(ValueError, match="a tensor of"):
        wire.encode_reply(NONCE, wire.OK, (), ((tensor, 0),))


def test_a_list_of_texts_is_refused_and_never_cut_short():
    with pytest.raises(ValueError, match="600 texts"):
        wire.encode_reply(NONCE, wire.OK, ("op aten::mm",) * 600)


@quick
@given(dtypes, shapes, st.randoms(use_true_random=False))
def test_requests_arrive_with_their_strides(dtype, shape, random):
    tensor = torch.arange(max(1, torch.Size(shape).numel())).to(dtype)[: torch.Size(shape).numel()].reshape(shape)
    order = list(range(len(shape)))
    random.shuffle(order)
    sent = tensor.permute(order)

    request, nonce = wire.decode_request(
        Bytes(wire.encode_request(Call(name="f", args=(("value", 1), ("value", None)), tensors=(sent,)), NONCE)).read
    )

    assert isinstance(request, Call)
    assert (request.name, request.args, nonce) == ("f", (("value", 1), ("value", None)), NONCE)
    assert request.tensors[0].dtype == dtype
    assert torch.equal(request.tensors[0], sent)
    if sent.numel():
        assert request.tensors[0].stride() == sent.stride()


def test_equal_requests_are_equal_bytes_whoever_else_holds_their_values() -> None:
    name = "soft" + "max"
    other = "".join(["so", "ftm", "ax"])  # equal, and another object
    held = [(name, other), (1.5, 10**12)]
    one = Call(name=name, args=(("value", held[1][0]), ("tensor", 0)), seed=10**12, tensors=(torch.ones(2, 3).T,))
    two = Call(
        name=other, args=(("value", 1.5), ("tensor", 0)), seed=int("1" + "0" * 12), tensors=(torch.ones(2, 3).T,)
    )

    assert wire.encode_question(one) == wire.encode_question(two)
