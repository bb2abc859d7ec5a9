"""Keeps what the operations of a call give, one after another, with the line of the attempt that each of them is on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attn_kata.attempt.devices import tensors_in

MOST_STEPS = 400
MOST_SOURCES = 64  # of one step
MOST_OPERANDS = 4  # of an operation that raises
MOST_NUMBERS = 1 << 20  # of all steps together: what is traced is a probe, and small


class Tracer(TorchFunctionMode):
    """A context that keeps the result of every operation on tensors: each number that the attempt could have printed.

    Operations of torch's own layers count as those of the line that calls the layer. What writes into a tensor counts as a
    step with all of that tensor. Only floating-point results are kept. Of each, it also keeps which steps made the tensors
    that the operation was given. An operation that raises is told, too, with the sizes of these tensors.
    """

    def __init__(self, filename: str) -> None:
        super().__init__()
        self._filename = filename
        self._texts: list[str] = []
        self._values: list[Tensor] = []
        self._numbers = 0
        self._steps: dict[int, int] = {}  # of each tensor, by its id, the step that gave it last
        self._kept: list[Tensor] = []  # the tensors themselves, so that no other one gets their id
        self._raising = ""

    def told(self) -> tuple[tuple[str, ...], Tensor]:
        """`LINE OPERATION SIZES SOURCES PATTERN` of each step, and the numbers of all steps in a row, float64.

        The sources are the steps that gave its arguments, "-" for a tensor of no step. The pattern is that of an einsum.
        The last text is that of an operation that raised, if one did: `LINE OPERATION raises SOURCE:SIZES …`.
        """
        numbers = torch.cat(self._values) if self._values else torch.zeros(0, dtype=torch.float64)
        return (*self._texts, *([self._raising] if self._raising else [])), numbers

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [*tensors_in((*args, *(kwargs or {}).values()))][:MOST_SOURCES]
        sources = ",".join(self._source(value) for value in given)
        pattern = next((one.replace(" ", "") for one in args[:1] if isinstance(one, str)), "")
        self._raising = ""
        try:
            out = func(*args, **(kwargs or {}))
        except Exception:
            self._raising = self._raising or self._told_raising(func, given)  # the innermost operation says most
            raise
        written = args[:1] if func is Tensor.__setitem__ else out
        for value in tensors_in(written):
            self._keep(func, value, f"{sources or '-'} {pattern}".rstrip())
        return out

    def _keep(self, func: Callable[..., Any], value: Tensor, whence: str) -> None:
        is_plain = value.device.type == "cpu" and value.layout is torch.strided and value.is_floating_point()
        if not is_plain or not 0 < value.numel() <= MOST_NUMBERS - self._numbers or len(self._texts) >= MOST_STEPS:
            return
        line = self._line()
        if line is None:
            return
        self._numbers += value.numel()
        sizes = ",".join(map(str, value.shape))
        self._steps[id(value)] = len(self._texts)
        self._kept.append(value)
        self._texts.append(f"{line} {_name(func)} {sizes} {whence}")
        self._values.append(value.detach().to(torch.float64, copy=True).reshape(-1))

    def _source(self, value: Tensor) -> str:
        return str(self._steps.get(id(value), "-"))

    def _told_raising(self, func: Callable[..., Any], given: list[Tensor]) -> str:
        line = self._line()
        operands = [f"{self._source(value)}:{','.join(map(str, value.shape))}" for value in given[:MOST_OPERANDS]]
        return "" if line is None else f"{line} {_name(func)} raises {' '.join(operands)}".rstrip()

    def _line(self) -> int | None:
        """The innermost line of the attempt that is running."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self._filename:
            frame = frame.f_back  # type: ignore[assignment]
        return frame.f_lineno if frame is not None else None


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", "an operation")[:40].replace(" ", "_")
