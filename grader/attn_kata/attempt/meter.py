"""Measures what a call costs: the elements made, the largest tensor, the multiplications, and the rows that layers read.

An operation makes elements when its result has new storage. Views, `expand` and slices make none, and neither does writing in
place or into a tensor given with `out=`. The copy that a broadcasting `@` makes inside is an operation of its own here.

A weight is a parameter, or made of parameters alone: a slice, a copy, several side by side. Where x (n, k) is multiplied with a
weight (k, m), it reads n rows. One product for three layers reads n rows, three products 3 n: compare two calls of one attempt.

The measure is made in the attempt process, so it is not trusted: it can fail an attempt, but never pass one.
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
    """A context that measures what runs in it, in this thread. `inputs` were there before; `weights` too."""

    def __init__(self, inputs: Iterable[Tensor], weights: Iterable[Tensor] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        # Keeping a tensor keeps its storage, so that no new storage gets the same address.
        self._seen: dict[int, Tensor] = {_storage(value): value for value in inputs}
        self._weights = {_storage(value) for value in weights}
        self._made = self._largest = self._multiplied = self._rows = 0

    def texts(self) -> tuple[str, ...]:
        """The measure, one number per text."""
        return (
            f"made {self._made}",
            f"largest {self._largest}",
            f"multiplied {self._multiplied}",
            f"rows {self._rows}",
        )

    def _measure(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        given = list(tensors_in((args, kwargs or {})))
        for value in given:
            self._seen.setdefault(_storage(value), value)
        results = list(tensors_in(out))
        self._know_weights(name, given, results)
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
            self._read(one, other, one.shape[-1])
        elif "convolution" in name and results:
            self._multiplied += results[0].numel() * math.prod(args[1].shape[1:])
            if self._is_weight(args[1]):
                self._rows += results[0].numel() // args[1].shape[0]
        elif name in _ELEMENTWISE and results:
            self._multiplied += results[0].numel()
            # W as (1, m, k) and x as (n, 1, k), multiplied and then summed, are a product of n rows, too.
            for value in given[:2]:
                if self._is_weight(value) and value.dim() > 1 and not self._is_weight(results[0]):
                    own = (size for size, stride in zip(value.shape, value.stride(), strict=True) if stride)
                    self._rows += results[0].numel() // max(1, math.prod(own))
        return out

    def _read(self, one: Tensor, other: Tensor, length: int) -> None:
        """Count the rows of the factor that is no weight; `length` is the size of a row."""
        if self._is_weight(one) is not self._is_weight(other):
            rows = other if self._is_weight(one) else one
            self._rows += rows.numel() // max(1, length)

    def _is_weight(self, value: Tensor) -> bool:
        return _storage(value) in self._weights

    def _know_weights(self, name: str, given: list[Tensor], results: list[Tensor]) -> None:
        """What is made of weights and single numbers is a weight. A tensor that is only like one is not."""
        others = [value for value in given if value.dim() and not self._is_weight(value)]
        made = {_storage(value) for value in results}
        if others:
            # What other numbers are written into is no weight any more.
            if name.endswith("_"):
                self._weights -= made
        elif any(self._is_weight(value) for value in given) and not _makes_no_copy(name):
            self._weights |= made


# Assigned here, because in the class body torch wraps it, and the wrapper imports a second's worth of torch._dynamo.
setattr(Meter, "__torch_dispatch__", Meter._measure)  # noqa: B010 - mypy knows another signature


def _makes_no_copy(name: str) -> bool:
    """Whether the operation takes only the shape or the dtype of a tensor: `new_zeros`, `empty_like`."""
    return name.startswith("new_") or name.endswith("_like")


def _storage(value: Tensor) -> int:
    return int(value.untyped_storage()._cdata) if value.layout is torch.strided else id(value)
