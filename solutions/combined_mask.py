"""Two masks in one, and attention with empty rows: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor


def combine_masks(keep: Tensor, causal: Tensor) -> Tensor:
    """keep (B, Tk), causal (Tq, Tk), both bool -> (B, 1, Tq, Tk), True where both allow."""
    # Insert the missing dimensions. keep has samples and keys, causal has queries and keys. Neither has heads, so that
    # dimension stays 1.
    return keep[:, None, None, :] & causal[None, None, :, :]  # (B, 1, 1, Tk) & (1, 1, Tq, Tk)


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """softmax(q kᵀ / sqrt(D)) v among the keys where mask is True; 0 for a query that has none."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)

    # A query in left padding has only padded keys before it, so it has nothing to attend to. With -inf its row would be
    # 0 / 0 = NaN, and the backward pass would meet it too: 0 times NaN is NaN. With a finite fill such a row gets equal
    # weights, and there is no NaN anywhere.
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)  # (B, H, Tq, Tk)

    # These equal weights become 0, and their gradient too. In every other row the masked weights are 0 already.
    return weights.masked_fill(~mask, 0.0) @ v  # (B, H, Tq, Dv)
