"""Our own code asked as an attempt is: in this process, with requests and replies like those that pass between two."""

from __future__ import annotations

import types
from pathlib import Path

import torch
from torch import Tensor

from ..engine import wire
from ..engine.executor import Executor


class Local:
    """Answers requests in this process: for our own code only."""

    generation = 0

    def __init__(self, namespace: types.ModuleType) -> None:
        self._executor = Executor(namespace, filename=str(namespace.__dict__.get("__file__")))

    def ask(self, request: wire.Request) -> wire.Reply:
        """The reply. What is drawn for it is not drawn from the generator that the tests use: elsewhere it would not be."""
        state = torch.default_generator.get_state()
        try:
            return self._answer(request)
        finally:
            torch.default_generator.set_state(state)

    def _answer(self, request: wire.Request) -> wire.Reply:
        fresh = tuple(same_strides(tensor) for tensor in request.tensors)
        status, texts, tensors = self._executor.execute(
            wire.Request(op=request.op, fields=request.fields, tensors=fresh)
        )
        told = tuple(
            wire.TensorReply(
                shape=tuple(value.shape),
                dtype=value.dtype,
                device={"cpu": wire.CPU, "meta": wire.META}.get(value.device.type, wire.OTHER),
                shares_input=bool(flags & wire.SHARES_INPUT),
                data=None if flags & wire.ABSENT or value.device.type != "cpu" else value.detach().clone(),
            )
            for value, flags in tensors
        )
        return wire.Reply(status=status, texts=texts, tensors=told)


def load_namespace(source: Path) -> types.ModuleType:
    """Our own source file, run as a module."""
    namespace = types.ModuleType(source.stem)
    namespace.__file__ = str(source)
    exec(compile(source.read_bytes(), str(source), "exec", dont_inherit=True), namespace.__dict__)
    return namespace


def same_strides(tensor: Tensor) -> Tensor:
    """A copy of a tensor with the same strides, as the wire makes one."""
    if tensor.numel() == 0 or tensor.is_contiguous():
        return tensor.detach().clone()
    reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    window = torch.as_strided(tensor.detach(), (reach,), (1,), tensor.storage_offset()).clone()
    return window.as_strided(tensor.shape, tensor.stride())
