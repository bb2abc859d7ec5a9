"""Whether a reply answers its request: decided for every reply that can be decoded."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_kata.protocol import replies, wire
from attn_kata.protocol.messages import AS_GIVEN, Block, Build, Call, Load, LoadWeights, Request

CALL = Call(name="f", args=(("tensor", 0),), tensors=(torch.ones(3),))
GRADIENTS = replace(CALL, cotangents=(1,), tensors=(torch.ones(3), torch.ones(3)))
AFTER = replace(CALL, inputs_after=True)
ON_A_DEVICE = replace(CALL, args=(*CALL.args, ("device", "meta")))
RECORDED = replace(CALL, record=True)
TRACED = replace(GRADIENTS, trace=True)
OF_A_MODULE = replace(GRADIENTS, name=None, module=1)
BUILD = Build(name="M", module=1)
WITH_WEIGHTS = Build(name="M", module=1, weights=("a",), tensors=(torch.ones(3),))
WEIGHTS = LoadWeights(module=1, weights=())
LOAD = Load(filename="attempt.py")
BLOCK = Block(words=("softmax",))


def reply(
    status: int, texts: tuple[str, ...] = (), count: int = 0, *, flags: int = 0, device: int = wire.CPU
) -> wire.Reply:
    """A decoded reply with this number of tensors, each (3,)."""
    part = wire.TensorReply(
        shape=(3,),
        dtype=torch.float32,
        device=device,
        shares_input=False,
        data=None if flags & wire.ABSENT else torch.arange(3.0),
    )
    return wire.Reply(status=status, texts=texts, tensors=(part,) * count)


@pytest.mark.parametrize(
    ("request_", "given_"),
    [
        (CALL, reply(wire.OK, count=1)),
        (CALL, reply(wire.RAISED, ("E", ""))),
        (CALL, reply(wire.NO_MEMORY)),
        (CALL, reply(wire.REFUSED, ("aten::softmax", "3"))),
        (RECORDED, reply(wire.OK, ("op aten::mm",), 1)),
        (ON_A_DEVICE, reply(wire.OK, count=1, flags=wire.ABSENT, device=wire.META)),
        (TRACED, reply(wire.OK, ("3 add 3",), count=1)),
        (GRADIENTS, reply(wire.OK, count=2)),
        (AFTER, reply(wire.OK, count=2)),
        (OF_A_MODULE, reply(wire.OK, count=4)),
        (BUILD, reply(wire.OK, ("a", "b"), 2, flags=wire.ABSENT)),
        (WITH_WEIGHTS, reply(wire.OK, (AS_GIVEN,))),
        (WITH_WEIGHTS, reply(wire.OK, ("a", "b"), 2, flags=wire.ABSENT)),
        (WITH_WEIGHTS, reply(wire.OK)),
        (WEIGHTS, reply(wire.OK)),
        (LOAD, reply(wire.OK)),
        (LOAD, reply(wire.OK, ("TypeError", "the demo failed", "3 <module>"))),
        (LOAD, reply(wire.SYNTAX, ("invalid syntax", "1", "x ="))),
        (BLOCK, reply(wire.OK)),
    ],
)
def test_a_reply_of_the_right_parts_answers(request_: Request, given_: wire.Reply) -> None:
    assert replies.answers(request_, given_)


@pytest.mark.parametrize(
    ("request_", "given_"),
    [
        (BUILD, reply(wire.OK, (AS_GIVEN,))),
        (WITH_WEIGHTS, reply(wire.OK, ("a",))),
        (CALL, reply(wire.OK)),
        (CALL, reply(wire.OK, count=2)),
        (CALL, reply(wire.OK, ("text",), 1)),
        (CALL, reply(wire.OK, count=1, flags=wire.ABSENT)),
        (CALL, reply(wire.OK, count=1, flags=wire.ABSENT, device=wire.META)),
        (CALL, reply(wire.RAISED)),
        (CALL, reply(wire.RAISED, ("E", ""), 1)),
        (CALL, reply(wire.REFUSED)),
        (CALL, reply(wire.BAD_RESULT)),
        (ON_A_DEVICE, reply(wire.OK, count=1, flags=wire.ABSENT)),
        (TRACED, reply(wire.OK, count=2)),
        (TRACED, reply(wire.OK, count=1, flags=wire.ABSENT)),
        (GRADIENTS, reply(wire.OK, count=1)),
        (GRADIENTS, reply(wire.OK, count=3)),
        (OF_A_MODULE, reply(wire.OK, count=1)),
        (AFTER, reply(wire.OK, count=1)),
        (BUILD, reply(wire.OK, ("a", "b"), 1, flags=wire.ABSENT)),
        (BUILD, reply(wire.OK, ("a", "a"), 2, flags=wire.ABSENT)),
        (BUILD, reply(wire.OK, ("a",), 1)),
        (WEIGHTS, reply(wire.OK, count=1)),
        (LOAD, reply(wire.OK, count=1)),
        (BLOCK, reply(wire.OK, count=1)),
    ],
)
def test_a_reply_of_other_parts_does_not(request_: Request, given_: wire.Reply) -> None:
    assert not replies.answers(request_, given_)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.sampled_from([CALL, GRADIENTS, AFTER, ON_A_DEVICE, RECORDED, TRACED, OF_A_MODULE, BUILD, WEIGHTS, LOAD, BLOCK]),
    st.integers(0, wire.REFUSED),
    st.lists(st.text(max_size=3), max_size=3),
    st.lists(st.tuples(st.sampled_from(wire.DTYPES), st.integers(0, 2), st.integers(0, 3)), max_size=4),
)
def test_judging_an_answer_never_raises(request_, status, texts, tensors):
    parts = tuple(
        wire.TensorReply(
            shape=(size,),
            dtype=dtype,
            device=flags % 3,
            shares_input=False,
            data=None if flags & 1 else torch.zeros(size, dtype=dtype),
        )
        for dtype, size, flags in tensors
    )

    judged = replies.answers(request_, wire.Reply(status=status, texts=tuple(texts), tensors=parts))

    assert judged in (True, False)
