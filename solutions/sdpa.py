"""Scaled dot-product attention: the reference, to be read beside your own."""

import math

from torch import Tensor


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q kᵀ / sqrt(D)) v, over any leading dimensions."""
    # The scores' variance grows with the D terms of each dot product; dividing by sqrt(D) keeps it where it was.
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., Tq, Tk)

    # For each query the weights over the keys sum to 1. torch's softmax takes the row's maximum off first, so that
    # exp never sees a large number.
    weights = scores.softmax(dim=-1)  # (..., Tq, Tk)

    return weights @ v  # (..., Tq, Dv)
