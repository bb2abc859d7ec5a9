"""`torch.compile` that leaves things as they are, for the attempt's process.

What is compiled computes what it computed before. Loading the compiler takes seconds, what it makes cannot be followed
operation by operation, and inductor starts programs, which isolation refuses.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch


def leave_uncompiled() -> None:
    """From now on let `torch.compile`, and `nn.Module.compile` with it, give back what they are given."""
    torch.compile = _compile
    os.environ["TORCH_COMPILE_DISABLE"] = "1"  # torch's own word for it, for whoever asks torch._dynamo


def _compile(model: Callable[..., Any] | None = None, **options: Any) -> Any:
    return _as_it_is if model is None else model


def _as_it_is(model: Callable[..., Any]) -> Callable[..., Any]:
    return model
