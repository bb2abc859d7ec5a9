"""Attention in parts, and merging them: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor


def partial_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """q (..., Tq, D), k (..., Tk, D), v (..., Tk, Dv), mask bool, True = may attend -> (..., Tq, Dv), (..., Tq)."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., Tq, Tk)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))

    # Subtracting the maximum changes no weight, and no exp overflows. A query with no key has the maximum -inf: take 0.
    largest = _finite(scores.detach().amax(dim=-1, keepdim=True))  # (..., Tq, 1)
    counts = (scores - largest).exp()
    total = counts.sum(dim=-1, keepdim=True)  # (..., Tq, 1)
    out = counts @ v / _nonzero(total)
    return out, (largest + _log(total)).squeeze(-1)


def merge_partials(out_a: Tensor, lse_a: Tensor, out_b: Tensor, lse_b: Tensor) -> tuple[Tensor, Tensor]:
    """out_a and out_b (..., Tq, Dv), lse_a and lse_b (..., Tq) -> (..., Tq, Dv), (..., Tq)."""
    # exp(lse) is the sum that each part was divided by. Only its ratio to the other one matters.
    largest = _finite(torch.maximum(lse_a, lse_b).detach())  # (..., Tq)
    a, b = (lse_a - largest).exp(), (lse_b - largest).exp()
    total = a + b
    out = (a.unsqueeze(-1) * out_a + b.unsqueeze(-1) * out_b) / _nonzero(total).unsqueeze(-1)
    return out, largest + _log(total)


def _finite(largest: Tensor) -> Tensor:
    """0 instead of -inf."""
    return largest.masked_fill(largest == float("-inf"), 0.0)


def _nonzero(total: Tensor) -> Tensor:
    """1 instead of 0: an empty sum is divided by it."""
    return total.masked_fill(total == 0, 1.0)


def _log(total: Tensor) -> Tensor:
    """The log; -inf for 0, where no gradient flows."""
    return _nonzero(total).log().masked_fill(total == 0, float("-inf"))
