"""Tells the attempt that there is no GPU: code that chooses its device then stays where its inputs are, on the processor.

The environment hides the GPUs of CUDA and HIP (`sandbox.surroundings`). No variable hides Apple's.
"""

from __future__ import annotations

from typing import Any

import torch

_BY_NAME = (getattr(torch, name, None) for name in ("cuda", "mps", "xpu", "accelerator"))  # as the version has them
_ASKED: tuple[Any, ...] = (torch.backends.mps, *_BY_NAME)


def hide_gpus() -> None:
    """Make every `is_available` of torch's GPUs answer False."""
    for module in _ASKED:
        if hasattr(module, "is_available"):
            module.is_available = _no


def _no() -> bool:
    return False
