"""What an attempt child that waits does meanwhile: it answers requests once, so that what is slow the first time is not waited
for: pages that are copied when they are first written, imports and caches that torch leaves for the first use.

It loads a module of layers and runs single operations on numbers that mean nothing; no answer is among them.
"""

from __future__ import annotations

import torch

from . import wire
from .executor import Executor
from .withheld import operation_names

_SOURCE = b'''
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
'''
_LONG = 130  # tokens of the largest tensors that a hidden test makes: the memory that they will take is written once


def warm_up() -> None:
    """Answer a few requests from bytes to bytes. Leaves torch's generator as it was."""
    state = torch.default_generator.get_state()
    executor = Executor()
    _answer(executor, "load", {"filename": "warm.py", "wanted": ["Layers"]}, wire.source_tensor(_SOURCE))
    for number, dtype in enumerate((torch.float64, torch.float32, torch.float16)):
        numbers = torch.randn(2, 3, 4, 6, dtype=torch.float64).to(dtype)
        kept = torch.ones(4, 6, dtype=torch.bool).tril()
        args = [{"tensor": 0}, {"tensor": 1}]
        call = {"args": args, "inputs_after": True, "training": True}
        _answer(executor, "build", {"module": number, "name": "Layers", "args": [{"value": 6}]})
        weights = {f"{name}.weight": torch.ones(6, 6, dtype=dtype) for name in ("first", "second", "third")}
        _answer(executor, "load_weights", {"module": number, "names": list(weights)}, *weights.values())
        for asked in ({"module": number, **call}, {"name": "single", **call}):
            _answer(executor, "call", asked, numbers, kept)
        _answer(executor, "call", {"module": number, **call, "cotangent": 2}, numbers, kept, torch.ones(2, 3, 4, 6))
        _answer(executor, "call", {"name": "single", **call, "record": dtype is torch.float64}, numbers, kept)
    rows = torch.ones(2, _LONG, 6, dtype=torch.float64)
    _answer(executor, "call", {"name": "long", "args": [{"tensor": 0}], "cotangent": 1}, rows, torch.ones(2, _LONG, _LONG))
    operation_names()
    torch.default_generator.set_state(state)


def _answer(executor: Executor, op: str, fields: dict[str, object], *tensors: torch.Tensor) -> None:
    sent = memoryview(wire.encode_request(wire.Request(op=op, fields=fields, tensors=tensors), 1))

    def read(count: int) -> bytearray:
        nonlocal sent
        part, sent = bytearray(sent[:count]), sent[count:]
        return part

    request, nonce = wire.decode_request(read)
    status, texts, answered = executor.execute(request)
    if status != wire.OK:
        raise RuntimeError(f"{op} answered {texts}")
    wire.encode_reply(nonce, status, texts, answered)
