"""Attention with linear biases (ALiBi): the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor


def alibi_slopes(num_heads: int) -> Tensor:
    """The slope of each head: (H,), float64."""
    power = 1 << (num_heads.bit_length() - 1)  # the largest power of two that is not above num_heads
    slopes = _of_power(power)
    # Every other slope of twice as many heads lies between two of these. The others are the same as these.
    return torch.cat([slopes, _of_power(2 * power)[::2]])[:num_heads]


def _of_power(heads: int) -> Tensor:
    """2 ** (-8 / heads), and its powers up to 2 ** -8."""
    return 2.0 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)


def alibi_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention with linear biases. q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv) -> (B, H, Tq, Dv)."""
    H, Tq, Tk = q.shape[1], q.shape[-2], k.shape[-2]
    query = torch.arange(Tk - Tq, Tk, device=q.device)[:, None]  # (Tq, 1): the queries are the last positions
    distance = query - torch.arange(Tk, device=q.device)  # (Tq, Tk), negative in the future
    slopes = alibi_slopes(H).to(q)[:, None, None]  # (H, 1, 1)

    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, Tq, Tk)
    scores = scores - slopes * distance  # the bias is not scaled
    weights = scores.masked_fill(distance < 0, float("-inf")).softmax(dim=-1)
    return weights @ v
