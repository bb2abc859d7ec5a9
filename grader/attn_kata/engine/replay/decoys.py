"""The numbers that traces are asked for with, in the place of those that the tests ask about."""

from __future__ import annotations

import torch
from torch import Tensor

NEAR = 0.05  # how far numbers lie from the tests' own, where an attempt's steps depend on numbers


def another(tensor: Tensor, drawing: torch.Generator, near: bool) -> Tensor:
    """Other numbers of the same size, laid out alike: none that a test has drawn, and nobody's to foresee."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return tensor
    held = torch.as_strided(tensor, (_reach(tensor),), (1,), tensor.storage_offset()).double()
    kept = (held == 0) | ~held.isfinite()
    size = held[~kept].square().mean().sqrt()  # NaN where there are none, and none to draw
    drawn = torch.randn(len(held), dtype=torch.float64, generator=drawing)
    drawn = held + drawn * (size / 10).clamp(max=NEAR) if near else drawn * size
    return torch.where(kept, held, drawn).to(tensor.dtype).as_strided(tensor.shape, tensor.stride())


def _reach(tensor: Tensor) -> int:
    """How many numbers its memory spans."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
