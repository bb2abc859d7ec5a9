"""Scaled dot-product attention: the reference. Compare it with your own code."""

import math

from torch import Tensor


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q kᵀ / sqrt(D)) v, over any leading dimensions."""
    # Each dot product has D terms, so the variance of the scores grows with D. Dividing by sqrt(D) removes this growth.
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., Tq, Tk)

    # For each query the weights over the keys sum to 1. torch's softmax first subtracts the maximum of the row, so exp
    # does not overflow.
    weights = scores.softmax(dim=-1)  # (..., Tq, Tk)

    return weights @ v  # (..., Tq, Dv)
