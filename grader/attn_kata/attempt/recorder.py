"""Records what runs during a call: torch operations as they are dispatched, ready-made attentions, products, stray devices.

What is recorded in the attempt child can fail an attempt, never pass one: the child says it.

Three watchers, because none sees everything: the autograd profiler sees every dispatcher operation by name, through aliases,
`torch.ops` and scripted functions; a Python profile function sees ready-made modules that are written in Python
(`nn.MultiheadAttention` with `need_weights` runs nothing but matrix products); a function mode sees which device a new
tensor was asked to lie on (see `devices`).
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
from torch import Tensor, nn
from torch._C._autograd import _disable_profiler_legacy
from torch.nn import functional

from attn_kata.attempt.devices import Devices

# Ready-made attentions (and softmax modules, for the kata that forbids them) that are written in Python; found by their code
# objects, so that an alias or a subclass is seen.
READY_MADE: dict[Any, str] = {
    functional.multi_head_attention_forward: "torch.nn.functional.multi_head_attention_forward",
    **{
        module.forward: f"torch.nn.{module.__name__}"
        for module in (
            nn.MultiheadAttention, nn.Transformer, nn.TransformerEncoder, nn.TransformerDecoder,
            nn.TransformerEncoderLayer, nn.TransformerDecoderLayer,
            nn.Softmax, nn.Softmax2d, nn.LogSoftmax, nn.Softmin,
        )
    },
}  # fmt: skip
_CODE: dict[types.CodeType, str] = {function.__code__: name for function, name in READY_MADE.items()}
FLEX = "torch.nn.attention.flex_attention"

# Others that torch has written in Python (decompositions, references, flex_attention's) are known by where they lie and by
# what they are called.
_TORCH = os.path.dirname(torch.__file__) + os.sep
_CALLED_SO = re.compile("attention|sdp|transformer|softm", re.IGNORECASE).search

# The innermost operations that multiply matrices.
PRODUCTS = frozenset(
    "aten::" + name
    for name in ("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "mkldnn_convolution", "thnn_conv2d",
                 "_slow_conv2d_forward", "slow_conv3d", "mkldnn_linear", "addmm_", "baddbmm_", "addbmm_", "addmv_")
)  # fmt: skip


class Recorder:
    """A context in which everything that runs is recorded; `told()` gives it as texts.

    Texts: `op NAME` per dispatcher operation, `call NAME` per ready-made attention, `product NAME SIZES` per matrix product
    in order, `stray NAME` per operation that would mix devices had the inputs lain on another one than the default.
    `names_types` says whether the source reads the type of a device.
    """

    def __init__(self, *, names_types: bool) -> None:
        self._ops: set[str] = set()
        self._products: list[str] = []
        self._calls: set[str] = set()
        self._devices = Devices(names_types=names_types)
        self._profile: Any = torch.autograd.profiler_legacy.profile(record_shapes=True)
        self._named: dict[types.CodeType, str] = dict(_CODE)  # what is ready-made of the functions met, "" for the others

    def __enter__(self) -> Recorder:
        self._profile.__enter__()
        self._devices.__enter__()  # type: ignore[no-untyped-call]
        sys.setprofile(self._python_call)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.setprofile(None)
        self._devices.__exit__(*error)  # type: ignore[no-untyped-call]
        for records in _disable_profiler_legacy():
            self._read(records)

    def _read(self, records: Any) -> None:
        """What one thread did: a push where an operation begins, a pop where it ends.

        Not as the profiler reads it, who works out times and a tree for each of them: that takes ten times as long as the call.
        """
        running: list[_Running] = []
        for record in records:
            kind = record.kind()
            if kind == "push":
                running.append(_Running(record=record, name=record.name()))
                self._ops.add(running[-1].name)
            elif kind == "pop":
                at = next((place for place in reversed(range(len(running))) if running[place].began(record)), None)
                if at is None:
                    continue
                ended = running.pop(at)
                if ended.name not in PRODUCTS and not ended.multiplies:
                    continue
                if not ended.multiplies:
                    self._products.append(f"product {ended.name} {ended.record.shapes()}")
                if running:  # whoever hands the product on does not make it
                    running[-1].multiplies = True

    def _python_call(self, frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call":
            name = self._named.get(frame.f_code)
            if name is None:
                name = self._named[frame.f_code] = name_of(frame.f_code)
            if name:
                self._calls.add(name)

    def told(self, result: Tensor) -> tuple[str, ...]:
        """What was recorded, one text a fact; `result` is what the call returned."""
        if self._devices.is_stray(result):
            self._devices.mixed.append("the result")
        return (
            *(f"call {name}" for name in sorted(self._calls)),
            *(f"stray {name}" for name in self._devices.mixed[:8]),
            *self._products[:200],
            *(f"op {name}" for name in sorted(self._ops)),
        )


def name_of(code: types.CodeType) -> str:
    """The whole name of a function of torch's that is called like an attention or a softmax, or ""."""
    name = getattr(code, "co_qualname", code.co_name)  # Python 3.10 has no other
    is_function = code.co_flags & inspect.CO_OPTIMIZED  # not the body of a class or of a module that is imported now
    if not is_function or not code.co_filename.startswith(_TORCH) or not _CALLED_SO(name):
        return ""
    module = code.co_filename[len(_TORCH) :].removesuffix(".py").removesuffix(os.sep + "__init__").replace(os.sep, ".")
    return f"torch.{module}.{name}"[:200]


def forget() -> None:
    """Let go of the ready-made functions and of their code, once they are blocked."""
    READY_MADE.clear()
    _CODE.clear()


@dataclass(kw_only=True)
class _Running:
    """An operation that has begun; `multiplies` where one within it made a product."""

    record: Any
    name: str
    multiplies: bool = False

    def began(self, record: Any) -> bool:
        """Whether `record` tells its end."""
        return bool(self.record.handle() == record.handle())
