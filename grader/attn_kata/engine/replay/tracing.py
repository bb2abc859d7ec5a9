"""Notes the operations of a call, in the process of the attempt: everything here may be tampered with by it.

A trace is JSON, {"steps": [...], "outputs": [a tensor or null, ...]}. A step is [operation, arguments, keyword arguments, the
number of an earlier step that drew the same random numbers or null]. A tensor is {"tensor": where}, where being ["argument",
place], ["weight", name], ["constant", dtype, shape, base64] or ["step", number, place among its results]; numbers, strings and
lists stand for themselves, other values are {kind: name}.

What is made of no number that is drawn anew (a mask, of sizes and flags) is the same for all of them. Of operations that are
not carried out again its result is kept, then.
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .. import wire
from ..devices import tensors_in
from . import operations, running

Json = Any


class Tracing(TorchDispatchMode):
    """A context that notes each operation on tensors; a trace calls `arguments` by place and `weights` by name."""

    def __init__(self, arguments: Sequence[Any], weights: dict[str, Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps: list[Json] = []
        self._known: dict[int, tuple[Tensor, Json]] = {}  # by id; held, so that no id is used twice
        self._stored: dict[tuple[int, torch.dtype], Json] = {}  # where memory was first seen, by its address
        self._open: set[int] = set()  # what depends on floating arguments or weights, by `_place`
        self._drew: dict[bytes, int] = {}  # the number of a step that draws, by the generator's state before it
        for place, value in enumerate(arguments):
            if isinstance(value, Tensor):
                self._remember(value, ["argument", place])
                if value.is_floating_point():
                    self._open.add(_place(value))
        for name, weight in weights.items():
            self._remember(weight, ["weight", name])
            self._open.add(_place(weight))

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else torch wraps `__torch_dispatch__` in something that imports its compiler, which takes a second."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(kind is not Tensor for kind in types):  # it has its own way; what that does comes here
            return NotImplemented
        kwargs = kwargs or {}
        given = list(tensors_in((args, kwargs)))
        is_open = any(_place(value) in self._open for value in given)
        if not is_open and not func._schema.is_mutable and not (_is_listed(func) and all(map(_can_be_said, given))):
            return func(*args, **kwargs)
        described = [self.described(list(args)), {name: self.described(value) for name, value in kwargs.items()}]
        described.append(self._drew_the_same(func))
        result = func(*args, **kwargs)
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        if any(isinstance(value, Tensor) for value in results):
            self._note(func, described, results)
        if is_open:
            self._open.update(map(_place, tensors_in(results)))
        return result

    def told(self, outputs: Iterable[Tensor | None]) -> Tensor:
        """The trace of what leads to these, (bytes,) uint8."""
        described = [None if value is None else self.described(value) for value in outputs]
        return wire.source_tensor(json.dumps({"steps": self.steps, "outputs": described}).encode())

    def described(self, value: Any) -> Json:
        """A value as a trace says it."""
        if isinstance(value, Tensor):
            if id(value) not in self._known and not _can_be_said(value):
                return {"unknown": f"a tensor of {value.layout} and {value.dtype}"}
            return {"tensor": self._where(value)}
        if isinstance(value, (list, tuple)):
            return [self.described(item) for item in value]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        for kind in (torch.dtype, torch.device, torch.layout, torch.memory_format):
            if isinstance(value, kind):
                return {kind.__name__: str(value).removeprefix("torch.")}
        if isinstance(value, torch.Generator):
            return {"generator": "another"}  # for each step, as it draws other numbers
        return {"unknown": type(value).__name__}

    def _drew_the_same(self, func: Any) -> int | None:
        """The step before this that drew from the same state, where this one draws: a checkpoint computes twice."""
        if not _draws(func):
            return None
        number = len(self.steps)
        first = self._drew.setdefault(wire.storage_bytes(torch.default_generator.get_state()), number)
        return None if first == number else first

    def _note(self, func: Any, described: list[Json], results: list[Any]) -> None:
        for place, value in enumerate(results):
            if isinstance(value, Tensor):
                self._remember(value, ["step", len(self.steps), place])
        self.steps.append([_named(func), *described])

    def _remember(self, value: Tensor, where: Json) -> None:
        self._known[id(value)] = value, where
        address = _address(value)
        if address:
            self._stored.setdefault((address, value.dtype), where)

    def _where(self, value: Tensor) -> Json:
        if id(value) in self._known:
            return self._known[id(value)][1]
        where = self._stored.get((_address(value), value.dtype))
        if where is None:
            where = ["constant", *_constant(value)]
        else:  # a view that no operation made: one of a weight, kept since the module was built
            layout = [list(value.shape), list(value.stride()), value.storage_offset()]
            self.steps.append(["aten.as_strided.default", [{"tensor": where}, *layout], {}, None])
            where = ["step", len(self.steps) - 1, 0]
        self._remember(value, where)
        return where


@functools.cache
def _draws(func: Any) -> bool:
    """Whether the operation draws from torch's generator."""
    return torch.Tag.nondeterministic_seeded in func.tags


_named = functools.cache(str)  # an operation


@functools.cache
def _is_listed(func: Any) -> bool:
    """Whether the operation is carried out again."""
    return operations.find(str(func)) is not None


def _can_be_said(value: Tensor) -> bool:
    """Whether a trace can say a tensor by its bytes."""
    return value.layout is torch.strided and not value.is_nested and value.dtype in running.DTYPES


def _place(value: Tensor) -> int:
    """A tensor's memory, which views share; the tensor itself where it has none."""
    return _address(value) or id(value)


def _address(value: Tensor) -> int:
    """Of a tensor's memory; 0 where it has none."""
    if value.layout is not torch.strided or value.device.type != "cpu":
        return 0
    return value.untyped_storage().data_ptr()


def _constant(value: Tensor) -> list[Json]:
    """What a tensor holds now; it may be written to later."""
    held = value.detach().resolve_conj().resolve_neg().contiguous()
    data = base64.b64encode(wire.storage_bytes(held)).decode("ascii")
    return [str(value.dtype).removeprefix("torch."), list(value.shape), data]
