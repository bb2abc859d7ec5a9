"""Runs our own code (the reference, mutants) in this process, behind the same requests and replies as an attempt."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from attn_kata.attempt.executor import Executor
from attn_kata.properties.handle import Handle
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Request


class Local:
    """A Transport that answers requests in this process. For our own code only. It never blocks operations."""

    generation = 0

    def __init__(self, namespace: types.ModuleType) -> None:
        self._executor = Executor(namespace, filename=str(namespace.__dict__.get("__file__")))

    def ask(self, request: Request) -> wire.Reply:
        """The reply. Torch's random generator is left unchanged, as it would be if the request went to another process."""
        state = torch.default_generator.get_state()
        try:
            return self._answer(request)
        finally:
            torch.default_generator.set_state(state)

    def block(self, words: tuple[str, ...]) -> None:
        """Do nothing: the grading itself runs in this process."""

    def _answer(self, request: Request) -> wire.Reply:
        fresh = tuple(same_strides(tensor) for tensor in request.tensors)
        status, texts, tensors = self._executor.execute(replace(request, tensors=fresh))
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


def local_handle(source: Path, returns: Mapping[str, tuple[str, ...]] | None = None) -> Handle:
    """A handle on one of our own source files, run in this process. `returns` as in `catalog.Kata`."""
    return Handle(Local(load_namespace(source)), returns)


def load_namespace(source: Path) -> types.ModuleType:
    """Run one of our own source files as a module."""
    namespace = types.ModuleType(source.stem)
    namespace.__file__ = str(source)
    exec(_compiled(source.read_bytes(), str(source)), namespace.__dict__)
    return namespace


@functools.lru_cache(maxsize=4)  # every mutant of a kata is made of the same source
def _compiled(source: bytes, filename: str) -> types.CodeType:
    return compile(source, filename, "exec", dont_inherit=True)


def same_strides(tensor: Tensor) -> Tensor:
    """A copy of a tensor with the same strides, as it would arrive over the wire."""
    if tensor.numel() == 0 or tensor.is_contiguous():
        return tensor.detach().clone()
    return wire.window(tensor.detach()).clone().as_strided(tensor.shape, tensor.stride())
