"""Every message and every request is what it was when it has been sent."""

from __future__ import annotations

import os
import threading

import pytest
import torch

from attn_kata.protocol import channel, messages, wire

JOB = messages.Job(
    slug="sdpa",
    katas="/katas",
    solutions="/solutions",
    attempt="sdpa.py",
    seed=7,
    timeout=3.5,
    properties=("values",),
    diagnose=False,
    tier=1,
    least_tier=1,
    denied=("/a", "/b"),
    processor=1,
)
MESSAGES = (
    messages.Grade(job=JOB),
    messages.Source(source=b"\x00\xff def"),
    messages.Cancel(),
    messages.Ready(),
    messages.Graded(report={"kata": "sdpa", "findings": [{"message": None}]}),
    messages.Cancelled(),
    messages.IsolationTooWeak(notes=("No Landlock.", "No seccomp.")),
    messages.Fault(text="Traceback\n\u2192"),
    messages.SourceRead(),
    messages.NewAttempt(port=4000, token="ab"),
    messages.EndAttempt(patient=True),
    messages.GradingDone(),
    messages.ReportSent(),
    messages.AttemptEnded(how="it crashed (SIGSEGV)", printed=b"\x00\xff"),
    messages.SendReport(),
    messages.ForkAhead(job=JOB),
    messages.StartJob(job=JOB),
    messages.EndGrader(),
    messages.GraderEnded(),
    messages.Prewarmed(),
    messages.Join(port=4000, token="ab", folder="/somewhere", engine=12),
)
REQUESTS = (
    messages.Load(filename="sdpa.py", wanted=("f", "G"), seed=3),
    messages.Adapt(),
    messages.Block(words=("softmax", "attention")),
    messages.Build(name="G", module=4, args=(("value", 6), ("device", "meta")), seed=2, weights=("a.weight",)),
    messages.LoadWeights(module=4, weights=("a.weight",)),
    messages.Call(module=4, args=(("value", None), ("value", 0.5)), training=True, record=True, of_answers=True),
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_comes_through_a_channel_as_it_was(message):
    reading, writing = os.pipe()
    sending = threading.Thread(target=channel.send, args=(writing, message))
    sending.start()
    received = channel.receive(reading)
    sending.join()
    os.close(reading)
    os.close(writing)

    assert received == message
    assert type(received) is type(message)


def test_every_message_is_tried_and_no_two_share_a_kind():
    assert {type(message) for message in MESSAGES} == set(messages.MESSAGES.values())
    assert len(messages.MESSAGES) == len({*messages.MESSAGES}) == len(MESSAGES)
    assert all(len(kind) == 4 for kind in messages.MESSAGES)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_a_request_is_decoded_as_it_was(request_):
    sent = memoryview(wire.encode_request(request_, 5))

    def read(count: int) -> bytearray:
        nonlocal sent
        part, sent = bytearray(sent[:count]), sent[count:]
        return part

    assert wire.decode_request(read) == (request_, 5)
    assert len(sent) == 0


def test_every_request_is_tried():
    assert {type(request) for request in REQUESTS} == set(messages.REQUESTS.values())


def test_a_source_is_carried_byte_for_byte():
    for source in (b"", b"x = 1\n", bytes(range(256))):
        assert wire.storage_bytes(wire.source_tensor(source)) == source
        assert wire.source_tensor(source).dtype == torch.uint8


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (channel._FRAME.pack(b"NOPE", 2) + b"{}", ValueError),
        (channel._FRAME.pack(b"GRAD", channel.MAX_MESSAGE + 1), ValueError),
        (channel._FRAME.pack(b"GRAD", 9) + b"{}", channel.ChannelClosed),
        (b"", channel.ChannelClosed),
    ],
)
def test_what_is_no_message_is_refused(frame, error):
    reading, writing = os.pipe()
    os.write(writing, frame)
    os.close(writing)

    with pytest.raises(error):
        channel.receive(reading)
    os.close(reading)
