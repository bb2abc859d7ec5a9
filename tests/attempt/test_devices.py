"""Which tensors would lie on another device than the inputs, where there is one device."""

from __future__ import annotations

import pytest
import torch

from attn_kata.attempt.executor import Executor
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Call, Load

BESIDE = {
    "told where": "torch.arange(3, device=x.device) + x",
    "told where in words": "torch.arange(3, device=str(x.device)) + x",
    "told the type": "torch.arange(3, device=x.device.type) + x",
    "moved": "torch.arange(3).to(x.device) + x",
    "moved by a name": "torch.arange(3).to(device=str(x.device)) + x",
    "made like an input": "torch.ones_like(x) + x.new_zeros(3) + x",
    "moved where it is needed": "(mask if (mask := torch.arange(3)).device == x.device else mask.to(x.device)) + x",
    "all on one device": "x + 1 if x.device == x.cumsum(0).device else None",
    "without dimensions": "x * torch.tensor(2.0, device='cpu') + torch.tensor(1.0)",
    "there and back": "torch.arange(3, device='cpu').add(1).to(x.device) + x",
    "a copy to look at": "x + 1 if x.cpu().isfinite().all() and x.to('cpu').numel() else None",
}
APART = {
    "not told where": "torch.arange(3) + x",
    "written out": "torch.arange(3, device='cpu') + x",
    "written out as a device": "torch.arange(3, device=torch.device('cpu')) + x",
    "made like an input, elsewhere": "torch.ones_like(x, device='cpu') + x",
    "moved away": "x.cpu() * 2 + x",
    "moved away by a name": "x.to('cpu') * 2 + x",
    "the result": "x.cpu() * 2",
    "told where another one lies": "torch.arange(3, device=torch.ones(3).device) + x",
}


def strays(body: str) -> list[str]:
    """What is told of a call with three numbers."""
    executor = Executor()
    source = wire.source_tensor(f"import torch\ndef call(x):\n    {body}\n".encode())
    executor.execute(Load(filename="a.py", wanted=("call",), tensors=(source,)))
    call = Call(name="call", args=(("tensor", 0),), devices=True, tensors=(torch.ones(3),))
    status, texts, _ = executor.execute(call)
    assert status == wire.OK, texts
    return [text for text in texts if text.startswith("stray ")]


@pytest.mark.parametrize("expression", BESIDE.values(), ids=BESIDE)
def test_what_lies_beside_the_inputs_is_right(expression):
    assert strays(f"return {expression}") == []


@pytest.mark.parametrize("expression", APART.values(), ids=APART)
def test_what_would_lie_apart_is_told(expression):
    assert strays(f"return {expression}")


def test_a_context_tells_where():
    assert strays("with torch.device(x.device): return x + torch.ones(3)") == []
    assert strays("with torch.device('cpu'): return x + torch.ones(3)")
