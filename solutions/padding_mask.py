"""A padding mask, and attention that gives padding no weight: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor


def padding_mask(lengths: Tensor, max_len: int) -> Tensor:
    """(B,) lengths -> (B, max_len) bool, True at real tokens."""
    positions = torch.arange(max_len, device=lengths.device)  # (max_len,), on the device of lengths

    # Strictly less: with length 1 only position 0 is real. A length of 0 gives a row without True.
    return positions[None, :] < lengths[:, None]  # (1, max_len) < (B, 1) -> (B, max_len)


def padded_attention(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
    """softmax(q kᵀ / sqrt(D)) v among the keys where keep (B, Tk) is True."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)

    # keep has samples and keys. So insert the dimensions of heads and queries between them. Without this, broadcasting
    # would align (B, Tk) with (Tq, Tk), and raise no error if B = Tq.
    padded = ~keep[:, None, None, :]  # (B, 1, 1, Tk)

    # Fill before the softmax, so that the weights of the real keys sum to 1. Use the minimum of the dtype, because a
    # constant such as -1e9 does not fit into float16.
    weights = scores.masked_fill(padded, torch.finfo(scores.dtype).min).softmax(dim=-1)  # (B, H, Tq, Tk)

    # A sample without any real key now has equal weights on all its padding. Set them to 0. This changes no other row.
    # (With -inf instead of the minimum, such a row would be 0 / 0 = NaN, in the gradients too.)
    return weights.masked_fill(padded, 0.0) @ v  # (B, H, Tq, Dv)
