"""Finds tensors that would be on the wrong device if the inputs were not on the default device (the CPU)."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

# Functions that create a tensor on the default device unless they get a device.
_FACTORIES = frozenset(
    getattr(torch, name)
    for name in (
        "arange",
        "empty",
        "eye",
        "full",
        "linspace",
        "logspace",
        "ones",
        "rand",
        "randint",
        "randn",
        "randperm",
        "tensor",
        "tril_indices",
        "triu_indices",
        "zeros",
        "as_tensor",
        "from_numpy",
    )
)
# Functions that accept tensors on two devices.
_CROSS_DEVICE = frozenset(
    (
        Tensor.__getitem__,
        Tensor.__setitem__,
        Tensor.copy_,
        Tensor.index_put_,
        Tensor.expand_as,
        Tensor.view_as,
        Tensor.reshape_as,  # these read only the shape of the other tensor
    )
)
_DEVICE = Tensor.device.__get__
_DEFAULT = torch.device("cpu")
INPUTS = torch.device("cpu", 0)  # the device that inputs report: it is the CPU too, but differs from the default


class Devices(TorchFunctionMode):
    """Follows *stray* tensors: those on the default device, until they are moved to the device of an input.

    A tensor is stray if it was created without a device, or with a device written out as "cpu". On the CPU this does no harm.
    On a GPU the first operation that mixes it with an input raises. A tensor without dimensions may be mixed with any device,
    so only tensors with one dimension or more are followed. `reads_device_type` says that the source reads the type of a
    device: then "cpu" may come from an input, and is accepted.

    `made_before` are tensors that were created on the default device while the attempt was loaded or its module was built.
    `inputs` are the arguments of the call, and what moves with a module: its parameters and buffers.
    """

    def __init__(
        self, *, reads_device_type: bool, made_before: Iterable[Tensor] = (), inputs: Iterable[Tensor] = ()
    ) -> None:
        super().__init__()
        self._mixed: list[str] = []
        self._reads_device_type = reads_device_type
        moves_along = {id(value) for value in inputs}
        # By id; keeping the tensor keeps its id unique.
        self._stray: dict[int, Tensor] = {
            id(value): value for value in made_before if value.dim() > 0 and id(value) not in moves_along
        }
        self._known: dict[int, Tensor] = {}  # what operations of this call have made
        self._old: set[int] | None = None  # tensors that were there before the call; only where the call is recorded

    def look_for_legacy_constructors(self) -> None:
        """A tensor that appears during the call, but not as a result of an operation, is stray: `torch.FloatTensor(…)`."""
        self._old = {id(value) for value in gc.get_objects() if type(value) is Tensor}

    def is_stray(self, value: Any) -> bool:
        return id(value) in self._stray

    def told(self, results: Iterable[Tensor]) -> tuple[str, ...]:
        """`stray NAME` for each operation that would mix devices, and "stray the result" if one of `results` is stray."""
        mixed = [*self._mixed, "the result"] if any(map(self.is_stray, results)) else self._mixed
        return tuple(f"stray {name}" for name in mixed[:8])

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func == _DEVICE:
            return INPUTS if out == _DEFAULT and not self.is_stray(args[0]) else out
        tensors = list(tensors_in((args, kwargs)))
        self._note_legacy(tensors, out)
        to = self._device_argument(func, args, kwargs)
        if to is not None:
            if self._is_default(to):
                return self._moved(out, args)
            self._stray.pop(id(out), None)
        elif func in _FACTORIES:
            if not any(isinstance(value, Tensor) for value in args):
                self._mark_stray(out)
        elif func in (Tensor.to, Tensor.type_as):
            beside = any(not self.is_stray(value) for value in tensors[1:])
            if beside:
                self._stray.pop(id(out), None)
            elif self.is_stray(args[0]):
                self._mark_stray(out)
        else:
            self._check_mixing(func, args, tensors, out)
        return out

    def _is_new(self, value: Tensor) -> bool:
        """Whether it appeared in this call, and not as a result of an operation."""
        assert self._old is not None
        return type(value) is Tensor and id(value) not in self._old and id(value) not in self._known

    def _note_legacy(self, tensors: list[Tensor], out: Any) -> None:
        if self._old is None:
            return
        for value in tensors:
            if self._is_new(value) and not value._is_view() and threading.active_count() == 1:
                self._mark_stray(value)
        for value in tensors_in(out):
            self._known[id(value)] = value

    def _check_mixing(self, func: Any, args: Any, tensors: list[Tensor], out: Any) -> None:
        strays = [value for value in tensors if self.is_stray(value)]
        if strays and func not in _CROSS_DEVICE:
            if any(value.dim() > 0 and not self.is_stray(value) for value in tensors):
                self._mixed.append(getattr(func, "__name__", "an operation"))
            else:
                for value in tensors_in(out):
                    self._mark_stray(value)
        elif strays and func is Tensor.__getitem__ and self.is_stray(args[0]):
            self._mark_stray(out)

    def _device_argument(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The device that a function gets as an argument, or None."""
        if func is Tensor.cpu:
            return _DEFAULT
        if func is Tensor.to:
            return next(
                (value for value in (*args[1:], *kwargs.values()) if isinstance(value, (torch.device, str))), None
            )
        return kwargs.get("device")

    def _is_default(self, device: Any) -> bool:
        """Whether a device is the default one, and was not read from an input."""
        if isinstance(device, str):
            return device == _DEFAULT.type and not self._reads_device_type
        return bool(device == _DEFAULT)

    def _moved(self, out: Any, args: Any) -> Any:
        """Mark `out` as stray. On the CPU a move may return its argument; then an alias is marked instead."""
        if isinstance(out, Tensor):
            if any(out is value for value in args):
                out = torch.ops.aten.alias(out)
            self._mark_stray(out)
        return out

    def _mark_stray(self, value: Any) -> None:
        if isinstance(value, Tensor) and value.dim() > 0:
            self._stray[id(value)] = value


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Every tensor in nested tuples, lists and dictionaries."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
