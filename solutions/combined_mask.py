"""Two masks in one, and attention that survives empty rows: the reference, to be read beside your own."""

import math

import torch
from torch import Tensor


def combine_masks(keep: Tensor, causal: Tensor) -> Tensor:
    """keep (B, Tk), causal (Tq, Tk), both bool -> (B, 1, Tq, Tk), True where both allow."""
    # Each mask gets the dimensions that it says nothing about. keep knows samples and keys, causal queries and keys;
    # neither knows heads, so that dimension stays 1.
    return keep[:, None, None, :] & causal[None, None, :, :]  # (B, 1, 1, Tk) & (1, 1, Tq, Tk)


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """softmax(q kᵀ / sqrt(D)) v among the keys where mask is True; 0 for a query that has none."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)

    # A token of left padding sees only itself and padding before it: nothing that may be attended to. With -inf its row
    # would be 0 / 0 = NaN, to be kept out of the backward pass as well, where 0 times NaN is NaN. A finite fill gives
    # such a row equal weights: no NaN arises anywhere.
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)  # (B, H, Tq, Tk)

    # Those equal weights become 0, and so does their gradient. In every other row masked weights are 0 already.
    return weights.masked_fill(~mask, 0.0) @ v  # (B, H, Tq, Dv)
