"""The backward pass of attention: the reference. Compare it with your own code."""

import math

from torch import Tensor

Saved = tuple[Tensor | None, ...]


def attention_forward(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Saved]:
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv), mask bool, True = may attend -> (B, H, Tq, Dv), saved."""
    scores = _scores(q, k, mask)
    lse = scores.logsumexp(dim=-1)  # (B, H, Tq)
    out = (scores - lse.unsqueeze(-1)).exp() @ v
    # The weights are (Tq, Tk), and can be computed again from lse: FlashAttention saves the same.
    return out, (q, k, v, mask, out, lse)


def attention_backward(grad_out: Tensor, saved: Saved) -> tuple[Tensor, Tensor, Tensor]:
    """grad_out (B, H, Tq, Dv) -> grad_q (B, H, Tq, D), grad_k (B, H, Tk, D), grad_v (B, H, Tk, Dv)."""
    q, k, v, mask, out, lse = saved
    weights = (_scores(q, k, mask) - lse.unsqueeze(-1)).exp()  # (B, H, Tq, Tk)

    # out = weights v
    grad_v = weights.transpose(-2, -1) @ grad_out
    grad_weights = grad_out @ v.transpose(-2, -1)  # (B, H, Tq, Tk)

    # A row of weights sums to 1. So the part of its gradient that is the same for all keys has no effect: it is
    # sum_j grad_weights[j] weights[j], which is grad_out · out. A masked key has weight 0, and so the gradient 0.
    row = (grad_out * out).sum(dim=-1, keepdim=True)  # (B, H, Tq, 1)
    grad_scores = weights * (grad_weights - row)

    # scores = q kᵀ / sqrt(D)
    grad_scores = grad_scores / math.sqrt(q.shape[-1])
    return grad_scores @ k, grad_scores.transpose(-2, -1) @ q, grad_v


def _scores(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """(B, H, Tq, Tk), -inf where the mask is False."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores if mask is None else scores.masked_fill(~mask, float("-inf"))
