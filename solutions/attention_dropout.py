"""Attention with dropout on its weights: the reference, to be read beside your own."""

import math

import torch
from torch import Tensor


def attention_with_dropout(q: Tensor, k: Tensor, v: Tensor, p: float, training: bool) -> Tensor:
    """softmax(q kᵀ / sqrt(D)) v; in training each weight is 0 with probability p, and 1 / (1 - p) as large otherwise."""
    # Checked in evaluation too: a wrong setting should not wait for the first training step to be found.
    if not 0 <= p < 1:
        raise ValueError(f"p must be at least 0 and less than 1, not {p}")

    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)
    weights = scores.softmax(dim=-1)  # (B, H, Tq, Tk)

    # After the softmax: a score of 0 would be an ordinary score, a weight of 0 is a connection cut.
    if training:
        kept = torch.rand_like(weights) >= p  # (B, H, Tq, Tk), drawn for every weight on its own, anew on each call
        # Scaled up, so that each weight is on average what it is in evaluation. The weights of one query need not sum
        # to 1 any more, and are not made to: that would let what is dropped change what is kept.
        weights = weights * kept / (1 - p)

    return weights @ v  # (B, H, Tq, Dv)
