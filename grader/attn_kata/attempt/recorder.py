"""Records what runs during a call: torch operations, ready-made attentions, matrix products.

The record is made in the attempt process, so it is not trusted. It can fail an attempt, but never pass one.

There are two watchers, because none sees everything. The autograd profiler sees every dispatcher operation by name, through
aliases, `torch.ops` and scripted functions. A Python profile function sees ready-made modules that are written in Python
(`nn.MultiheadAttention` with `need_weights` runs only matrix products). On which device a new tensor is created is seen by
`devices`, in calls of its own: the two in one call take longer than both of them.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import types
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._C._autograd import _disable_profiler_legacy
from torch.nn import functional

# Ready-made attentions that are written in Python, and softmax modules for the kata that forbids them. They are found by their
# code objects, so that an alias or a subclass is seen too.
READY_MADE: dict[Any, str] = {
    functional.multi_head_attention_forward: "torch.nn.functional.multi_head_attention_forward",
    **{
        module.forward: f"torch.nn.{module.__name__}"
        for module in (
            nn.MultiheadAttention,
            nn.Transformer,
            nn.TransformerEncoder,
            nn.TransformerDecoder,
            nn.TransformerEncoderLayer,
            nn.TransformerDecoderLayer,
            nn.Softmax,
            nn.Softmax2d,
            nn.LogSoftmax,
            nn.Softmin,
        )
    },
    # What every function that computes gradients calls, for the kata that asks for a backward pass by hand.
    torch.autograd.grad: "torch.autograd.grad",
    torch.autograd.backward: "torch.autograd.backward",
    torch.autograd.graph._engine_run_backward: "torch.autograd.backward",
    torch.autograd.forward_ad.make_dual: "torch.autograd.forward_ad.make_dual",
}
_CODE: dict[types.CodeType, str] = {function.__code__: name for function, name in READY_MADE.items()}
FLEX = "torch.nn.attention.flex_attention"

# Other ready-made functions that torch has written in Python (decompositions, references, flex_attention) are known by their
# file and their name.
_TORCH = os.path.dirname(torch.__file__) + os.sep
named_like_attention = re.compile("attention|sdp|transformer|softm", re.IGNORECASE).search

# The innermost operations that multiply matrices.
PRODUCTS = frozenset(
    "aten::" + name
    for name in (
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "addbmm",
        "mv",
        "addmv",
        "dot",
        "mkldnn_convolution",
        "thnn_conv2d",
        "_slow_conv2d_forward",
        "slow_conv3d",
        "mkldnn_linear",
        "addmm_",
        "baddbmm_",
        "addbmm_",
        "addmv_",
    )
)


class Recorder:
    """A context that records everything that runs in it. `told()` returns the record.

    Texts: `op NAME` per dispatcher operation, `call NAME` per ready-made attention, `product NAME SIZES` per matrix product
    in order.
    """

    def __init__(self) -> None:
        self._ops: set[str] = set()
        self._products: list[str] = []
        self._calls: set[str] = set()
        self._profile: Any = torch.autograd.profiler_legacy.profile(record_shapes=True)
        # By the id of a code object that was called, because hashing one takes longer than a short call: the name of a
        # ready-made function, or "" for any other. The code is kept, so that its id stays its own.
        self._named: dict[int, tuple[types.CodeType, str]] = {}

    def __enter__(self) -> Recorder:
        self._profile.__enter__()
        sys.setprofile(self._python_call)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.setprofile(None)
        for records in _disable_profiler_legacy():
            self._read(records)

    def _read(self, records: Any) -> None:
        """Read the events of one thread: a push when an operation begins, a pop when it ends.

        The profiler's own reader also computes times and a tree of operations. That takes ten times as long as the call itself.
        """
        running: list[_Running] = []
        for record in records:
            kind = record.kind()
            if kind == "push":
                name = record.name()
                running.append(_Running(record, record.handle(), name))
                self._ops.add(name)
            elif kind == "pop":
                handle = record.handle()
                at = len(running) - 1
                while at >= 0 and running[at].handle != handle:
                    at -= 1
                if at < 0:
                    continue
                ended = running.pop(at)
                if ended.name not in PRODUCTS and not ended.multiplies:
                    continue
                if not ended.multiplies:
                    self._products.append(f"product {ended.name} {ended.record.shapes()}")
                if running:  # the enclosing operation did not make this product itself
                    running[-1].multiplies = True

    def _python_call(self, frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call":
            code = frame.f_code
            known = self._named.get(id(code))
            if known is None:
                known = self._named[id(code)] = code, _CODE.get(code) or name_of(code)
            if known[1]:
                self._calls.add(known[1])

    def told(self) -> tuple[str, ...]:
        """The record, one fact per text."""
        return (
            *(f"call {name}" for name in sorted(self._calls)),
            *self._products[:200],
            *(f"op {name}" for name in sorted(self._ops)),
        )


def name_of(code: types.CodeType) -> str:
    """The full name of a function of torch whose name says attention or softmax; "" for other functions."""
    name = getattr(code, "co_qualname", code.co_name)  # Python 3.10 has no co_qualname
    is_function = code.co_flags & inspect.CO_OPTIMIZED  # and not the body of a class or module during an import
    if not is_function or not code.co_filename.startswith(_TORCH) or not named_like_attention(name):
        return ""
    module = code.co_filename[len(_TORCH) :].removesuffix(".py").removesuffix(os.sep + "__init__").replace(os.sep, ".")
    return f"torch.{module}.{name}"[:200]


def forget() -> None:
    """Drop the ready-made functions and their code, once they are blocked."""
    READY_MADE.clear()
    _CODE.clear()


@dataclass(slots=True)
class _Running:
    """An operation that has begun. `multiplies` says that an operation inside it made a product."""

    record: Any
    handle: int  # the same in the event that ends it
    name: str
    multiplies: bool = False
