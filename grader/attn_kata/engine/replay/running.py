"""Carries out a trace, in a process in which nothing of the attempt runs. The trace itself may be anything."""

from __future__ import annotations

import base64
import gc
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import wire
from . import backward, operations

Json = Any
Operation = torch._ops.OpOverload[..., Any]
DTYPES = (*wire.DTYPES, torch.complex64, torch.complex128)  # a result has none of the last two, what leads to it may
_DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES}
_KINDS: dict[str, Callable[[Any], Any]] = {
    "dtype": _DTYPES.__getitem__,
    "device": torch.device,
    "generator": lambda _: torch.Generator().manual_seed(int(torch.randint(1 << 31, ()))),  # it draws anew in each call
    "layout": {"strided": torch.strided}.__getitem__,
    "memory_format": {
        "contiguous_format": torch.contiguous_format,
        "preserve_format": torch.preserve_format,
    }.__getitem__,
}


class Forbidden(Exception):
    """A trace holds an operation that is forbidden; its name."""

    kind = "forbidden"


class NotATrace(Exception):
    """A trace that cannot be carried out, and why."""

    kind = "not followed"


def run(
    trace: Tensor, arguments: Sequence[Any], weights: dict[str, Tensor], forbidden: Iterable[str]
) -> list[Tensor | None]:
    """What a trace, (bytes,) uint8, gives for these arguments and weights, which it may write to.

    `forbidden` are words in names of operations. Raises Forbidden, NotATrace.
    """
    words = tuple(forbidden)
    collects = gc.isenabled()
    gc.disable()  # there is no garbage, and looking for it among the steps takes as long as they do
    try:
        told = json.loads(wire.storage_bytes(trace))
        running = _Running(arguments, weights, words)
        with torch.no_grad():
            for name, args, kwargs, same in told["steps"]:
                running.take(name, args, kwargs, same)
            outputs = running.value(told["outputs"])
            if type(outputs) is not list:
                raise NotATrace("it gives no list")
    except (Forbidden, NotATrace):
        raise
    except Exception as error:
        raise NotATrace(f"{type(error).__name__}: {error}"[:500]) from None
    finally:
        if collects:
            gc.enable()
    if not all(output is None or isinstance(output, Tensor) for output in outputs):
        raise NotATrace("what it gives is no tensor")
    return outputs


class _Running:
    def __init__(self, arguments: Sequence[Any], weights: dict[str, Tensor], forbidden: Sequence[str]) -> None:
        self._arguments, self._weights, self._forbidden = arguments, weights, forbidden
        # By name: an operation, what carries it out, and whether it draws. Looked up once, not for each step.
        self._calls: dict[str, tuple[Operation, Callable[..., Any], bool]] = {}
        self._results: list[list[Any]] = []
        self._states: dict[int, Tensor] = {}  # of torch's generator, before a step that draws

    def take(self, name: str, args: Json, kwargs: Json, same: Json) -> None:
        """Carry out one step, drawing what the step `same` drew."""
        call, carry_out, draws = self._calls.get(name) or self._found(name)
        given, named = self.value(args), {key: self.value(value) for key, value in kwargs.items()}
        if operations.names_kinds_by_number(call, given, named):
            raise NotATrace(f"{name} is given a dtype or a layout that is none")
        if draws:
            if same is not None:
                torch.default_generator.set_state(self._states[same])
            self._states[len(self._results)] = torch.default_generator.get_state()
        result = carry_out(*given, **named)
        self._results.append(list(result) if isinstance(result, (tuple, list)) else [result])

    def _found(self, name: str) -> tuple[Operation, Callable[..., Any], bool]:
        if not operations.is_name(name):
            raise NotATrace("a step of it names no operation")
        if any(word in name for word in self._forbidden):
            raise Forbidden(name)
        call = operations.find(name)
        if call is None:
            raise NotATrace(f"{name} is not among the operations that are carried out again")
        self._calls[name] = call, backward.checked(call), torch.Tag.nondeterministic_seeded in call.tags
        return self._calls[name]

    def value(self, told: Json) -> Any:
        """What a trace says as a value."""
        if isinstance(told, list):
            return [self.value(item) for item in told]
        if not isinstance(told, dict):
            return told
        ((kind, what),) = told.items()
        if kind == "unknown":
            raise NotATrace(f"{what} goes into an operation"[:500])
        return self._tensor(*what) if kind == "tensor" else _KINDS[kind](what)

    def _tensor(self, where: str, *what: Json) -> Any:
        if where == "argument":
            return self._arguments[what[0]]
        if where == "weight":
            return self._weights[what[0]]
        if where == "step":
            return self._results[what[0]][what[1]]
        return _constant(*what)


def _constant(dtype: str, shape: list[int], data: str) -> Tensor:
    raw = bytearray(base64.b64decode(data))
    return wire.from_bytes(raw, _DTYPES[dtype]).reshape(shape) if raw else torch.empty(shape, dtype=_DTYPES[dtype])
