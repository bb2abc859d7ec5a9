"""Switches `torch.compile` off in the attempt process: it returns its argument unchanged.

A compiled function computes the same values, so nothing is lost. Loading the compiler takes seconds, compiled code cannot be
recorded operation by operation, and inductor starts programs, which the sandbox refuses.

`torch.utils.checkpoint` stays torch's own. It loads the compiler at its first call, only to say that it is not to be compiled.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint

_TORCHS_CHECKPOINT = torch.utils.checkpoint.checkpoint


def disable_compile() -> None:
    """Make `torch.compile` and `nn.Module.compile` return what they are given; `checkpoint` loads the compiler unwatched."""
    torch.compile = _compile
    os.environ["TORCH_COMPILE_DISABLE"] = "1"  # torch's own switch, for code that uses torch._dynamo directly
    torch.utils.checkpoint.checkpoint = _checkpoint


def _compile(model: Callable[..., Any] | None = None, **options: Any) -> Any:
    return _unchanged if model is None else model


def _unchanged(model: Callable[..., Any]) -> Callable[..., Any]:
    return model


@functools.wraps(_TORCHS_CHECKPOINT)
def _checkpoint(*args: Any, **kwargs: Any) -> Any:
    """Torch's own, which loads the compiler at its first call. With a profile function set, loading takes twice as long."""
    if "torch._dynamo" not in sys.modules:
        profile = sys.getprofile()
        sys.setprofile(None)
        try:
            importlib.import_module("torch._dynamo")
        finally:
            sys.setprofile(profile)
    return _TORCHS_CHECKPOINT(*args, **kwargs)
