"""Switches `torch.compile` off in the attempt process: it returns its argument unchanged.

A compiled function computes the same values, so nothing is lost. Loading the compiler takes seconds, compiled code cannot be
recorded operation by operation, and inductor starts programs, which the sandbox refuses.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch


def disable_compile() -> None:
    """Make `torch.compile` and `nn.Module.compile` return what they are given."""
    torch.compile = _compile
    os.environ["TORCH_COMPILE_DISABLE"] = "1"  # torch's own switch, for code that uses torch._dynamo directly


def _compile(model: Callable[..., Any] | None = None, **options: Any) -> Any:
    return _unchanged if model is None else model


def _unchanged(model: Callable[..., Any]) -> Callable[..., Any]:
    return model
