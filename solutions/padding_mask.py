"""A padding mask, and attention that gives padding no weight: the reference, to be read beside your own."""

import math

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, max_len: int) -> Tensor:
    """(B,) lengths -> (B, max_len) bool, True at real tokens."""
    positions = torch.arange(max_len, device=lengths.device)  # (max_len,), made where lengths lies

    # Position 0 is real from length 1 on: strictly less. A length of 0 leaves its row without a True.
    return positions[None, :] < lengths[:, None]  # (1, max_len) < (B, 1) -> (B, max_len)


def padded_attention(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    """softmax(q kᵀ / sqrt(D)) v among the keys where keep (B, Tk) is True."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)

    # keep says something about samples and keys. Named one by one, the dimensions between them cannot be confused;
    # left to broadcasting, (B, Tk) would line up with (Tq, Tk), silently so where B = Tq.
    padded = ~keep[:, None, None, :]  # (B, 1, 1, Tk)

    # Before the softmax, so that the real keys' weights sum to 1. The dtype's own minimum, because a constant such as
    # -1e9 does not fit into float16.
    weights = scores.masked_fill(padded, torch.finfo(scores.dtype).min).softmax(dim=-1)  # (B, H, Tq, Tk)

    # A sample without any real key now has equal weights on all its padding: they become 0. Elsewhere this changes
    # nothing. (With -inf instead of the minimum such a row would be 0 / 0 = NaN, in the gradients too.)
    return weights.masked_fill(padded, 0.0) @ v  # (B, H, Tq, Dv)
