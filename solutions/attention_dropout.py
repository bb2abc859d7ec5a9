"""Attention with dropout on its weights: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor


def attention_with_dropout(q: Tensor, k: Tensor, v: Tensor, p: float, training: bool) -> Tensor:
    """softmax(q kᵀ / sqrt(D)) v; in training each weight is 0 with probability p, and 1 / (1 - p) as large otherwise."""
    # Check in evaluation too, so that a wrong setting is found before the first training step.
    if not 0 <= p < 1:
        raise ValueError(f"p must be at least 0 and less than 1, not {p}")

    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)
    weights = scores.softmax(dim=-1)  # (B, H, Tq, Tk)

    # After the softmax: a score of 0 would be an ordinary score, but a weight of 0 removes the key.
    if training:
        kept = torch.rand_like(weights) >= p  # (B, H, Tq, Tk), independent for every weight and call
        # Scale the kept weights up, so that the average of each weight is its value in evaluation. The weights of one
        # query may not sum to 1 now. Do not normalise again: then the dropped weights would change the kept ones.
        weights = weights * kept / (1 - p)

    return weights @ v  # (B, H, Tq, Dv)
