"""Measures what a call costs: the elements that its operations make, the largest tensor, and the multiplications.

An operation makes elements when its result has new storage. Views, `expand` and slices make none, and neither does writing in
place or into a tensor given with `out=`. The copy that a broadcasting `@` makes inside is an operation of its own here. The
measure is made in the attempt process, so it is not trusted: it can fail an attempt, but never pass one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from attn_kata.attempt.devices import tensors_in

# The places of the two factors among the arguments of an operation that multiplies matrices.
_PRODUCTS = {
    "mm": (0, 1),
    "bmm": (0, 1),
    "mv": (0, 1),
    "dot": (0, 1),
    "vdot": (0, 1),
    "addmm": (1, 2),
    "addmm_": (1, 2),
    "baddbmm": (1, 2),
    "baddbmm_": (1, 2),
    "addbmm": (1, 2),
    "addmv": (1, 2),
    "_addmm_activation": (1, 2),
}
_ELEMENTWISE = ("mul", "mul_", "addcmul", "addcmul_")


class Meter(TorchDispatchMode):
    """A context that measures what runs in it, in this thread. `inputs` are tensors that were there before."""

    def __init__(self, inputs: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        # Keeping a tensor keeps its storage, so that no new storage gets the same address.
        self._seen: dict[int, Tensor] = {_storage(value): value for value in inputs}
        self._made = self._largest = self._multiplied = 0

    def texts(self) -> tuple[str, ...]:
        """The measure, one number per text."""
        return f"made {self._made}", f"largest {self._largest}", f"multiplied {self._multiplied}"

    def _measure(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        for value in tensors_in((args, kwargs or {})):
            self._seen.setdefault(_storage(value), value)
        results = list(tensors_in(out))
        for value in results:
            if _storage(value) not in self._seen:
                self._seen[_storage(value)] = value
                self._made += value.numel()
                self._largest = max(self._largest, value.numel())
        if name in _PRODUCTS and results:
            one, other = (args[place] for place in _PRODUCTS[name])
            # (…, n, k) times (k, m) or (k,): each of the n * k numbers of the first is used m times.
            columns = 1 if other.dim() == 1 else other.shape[-1]
            self._multiplied += one.numel() * columns
        elif "convolution" in name and results:
            self._multiplied += results[0].numel() * math.prod(args[1].shape[1:])
        elif name in _ELEMENTWISE and results:
            self._multiplied += results[0].numel()
        return out


# Assigned here, because in the class body torch wraps it, and the wrapper imports a second's worth of torch._dynamo.
setattr(Meter, "__torch_dispatch__", Meter._measure)  # noqa: B010 - mypy knows another signature


def _storage(value: Tensor) -> int:
    return int(value.untyped_storage()._cdata) if value.layout is torch.strided else id(value)
