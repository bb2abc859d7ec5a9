"""Prewarms a spare attempt process: it answers a few requests while it waits, because the first of each kind is slow.

A forked process copies memory pages when it first writes to them, and torch fills imports and caches at the first use. The
source below has a module of layers and some single operations, on meaningless numbers. It holds no answer.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from attn_kata.attempt import blocked
from attn_kata.attempt.executor import Executor
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Build, Call, Load, LoadWeights, Request

_SOURCE = b"""
import math
import torch
from torch import nn
from torch.nn import functional

def single(numbers, kept):
    return sum(part.float().nan_to_num(neginf=0.0).sum() for part in (
        numbers.softmax(-1), functional.dropout(numbers, 0.5, training=True), numbers.exp() / numbers.sum(-1, keepdim=True),
        numbers.masked_fill(~kept, float("-inf")), torch.where(kept, numbers, 0.0), numbers @ numbers.transpose(-2, -1),
        torch.matmul(numbers, numbers.mT), torch.einsum("...ij,...kj->...ik", numbers, numbers),
        numbers.transpose(1, 2).reshape(2, 4, 18), numbers.transpose(1, 2).contiguous().view(2, 4, 3, 6),
        torch.cat(numbers.chunk(2, dim=-1), dim=-1), numbers / math.sqrt(6), numbers.amax(-1), numbers.mean(-1),
    ))

def long(rows):
    table = rows @ rows.mT
    return ((table / 2).masked_fill(table < 0, 0.0) + 1).softmax(-1).exp() * table

class Layers(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(size, size) for _ in range(3))
        self.drop = nn.Dropout(0.5)

    def forward(self, numbers, kept=None):
        return self.third(self.drop(self.second(self.first(numbers))))
"""
_LONG = 130  # tokens of the largest tensors in a hidden test: this writes to as much memory as they need


def prewarm() -> None:
    """Answer a few requests, from bytes to bytes. Torch's random generator is left unchanged."""
    state = torch.default_generator.get_state()
    executor = Executor()
    _answer(executor, Load(filename="prewarm.py", wanted=("Layers",), tensors=(wire.source_tensor(_SOURCE),)))
    args = (("tensor", 0), ("tensor", 1))
    for number, dtype in enumerate((torch.float64, torch.float32, torch.float16)):
        numbers = torch.randn(2, 3, 4, 6, dtype=torch.float64).to(dtype)
        kept = torch.ones(4, 6, dtype=torch.bool).tril()
        call = Call(args=args, inputs_after=True, training=True, tensors=(numbers, kept))
        weights = {f"{name}.weight": torch.ones(6, 6, dtype=dtype) for name in ("first", "second", "third")}
        _answer(executor, Build(module=number, name="Layers", args=(("value", 6),)))
        _answer(executor, LoadWeights(module=number, weights=tuple(weights), tensors=tuple(weights.values())))
        for request in (replace(call, module=number), replace(call, name="single")):
            _answer(executor, request)
        cotangent = torch.ones(2, 3, 4, 6)
        _answer(executor, replace(call, module=number, cotangents=(2,), tensors=(numbers, kept, cotangent)))
        _answer(executor, replace(call, name="single", record=dtype is torch.float64))
    rows = torch.ones(2, _LONG, 6, dtype=torch.float64)
    _answer(executor, Call(name="long", args=args[:1], cotangents=(1,), tensors=(rows, torch.ones(2, _LONG, _LONG))))
    blocked.prepare()
    torch.default_generator.set_state(state)


def _answer(executor: Executor, request: Request) -> None:
    sent = memoryview(wire.encode_request(request, 1))

    def read(count: int) -> bytearray:
        nonlocal sent
        part, sent = bytearray(sent[:count]), sent[count:]
        return part

    decoded, nonce = wire.decode_request(read)
    status, texts, answered = executor.execute(decoded)
    if status != wire.OK:
        raise RuntimeError(f"{type(request).__name__} answered {texts}")
    wire.encode_reply(nonce, status, texts, answered)
