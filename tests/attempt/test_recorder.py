"""What the recorder tells of functions that torch has written in Python."""

from __future__ import annotations

import types

import pytest
import torch

from attn_kata.grading.local import Local
from attn_kata.properties import FORBIDDEN_SOFTMAXES, PropertyFailed
from attn_kata.properties.checks import check_from_scratch
from attn_kata.properties.handle import Handle

READY_MADE = {
    "a decomposition": "import torch._decomp.decompositions as d\ndef softmax(x): return d._softmax(x, 1, False)",
    "a reference": "import torch._refs\ndef softmax(x): return torch._refs.softmax(x, 1)",
    "a module": "import torch\ndef softmax(x): return torch.nn.Softmin(1)(-x)",
}


@pytest.mark.parametrize("source", READY_MADE.values(), ids=READY_MADE)
def test_a_softmax_written_in_python_is_seen(source):
    namespace = types.ModuleType("attempt")
    exec(source, namespace.__dict__)
    handle = Handle(Local(namespace))

    with pytest.raises(PropertyFailed, match=r"^calls (torch|nn|F)\..*[sS]oftm.*, which is ready-made"):
        check_from_scratch(handle.softmax, torch.randn(2, 3), forbidden=FORBIDDEN_SOFTMAXES)


def test_a_function_of_the_attempts_may_be_called_so():
    source = "def safe_softmax(x): return x.exp() / x.exp().sum(1, True)\ndef softmax(x): return safe_softmax(x)"
    namespace = types.ModuleType("attempt")
    exec(source, namespace.__dict__)

    check_from_scratch(Handle(Local(namespace)).softmax, torch.randn(2, 3), forbidden=FORBIDDEN_SOFTMAXES)


def test_a_copy_of_the_code_of_something_ready_made_is_seen():
    source = """
import torch, types
f = torch.autograd.backward
copy = types.FunctionType(f.__code__.replace(), f.__globals__, "mine", f.__defaults__, f.__closure__)
def doubled(x):
    leaf = x.clone().requires_grad_()
    copy((leaf**2).sum())
    return leaf.grad
"""
    namespace = types.ModuleType("attempt")
    exec(source, namespace.__dict__)

    recording = Handle(Local(namespace)).doubled.run(torch.randn(2, 3), record=True).recording
    assert recording is not None
    assert "torch.autograd.backward" in recording.calls
