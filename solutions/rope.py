"""Rotary position embedding, and attention with it: the reference. Compare it with your own code."""

import math

import torch
from torch import Tensor


def apply_rope(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Turn each pair of columns of x (B, H, T, D) by the position of its token, (T,) or (B, T) -> (B, H, T, D)."""
    D = x.shape[-1]
    if D % 2 != 0:
        raise ValueError(f"D is {D}, and must be even: columns turn in pairs")
    # float64, because angles grow with the position: bfloat16 holds no integer above 256, and float32 loses digits too.
    exponents = torch.arange(0, D, 2, device=x.device, dtype=torch.float64) / D
    frequencies = float(base) ** -exponents  # (D / 2,)
    angles = positions[..., None] * frequencies  # (T, D / 2) or (B, T, D / 2)
    if angles.dim() == 3:
        angles = angles[:, None]  # one for all heads: (B, 1, T, D / 2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)

    first, second = x[..., 0::2], x[..., 1::2]  # the two members of each pair: (B, H, T, D / 2)
    turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1)  # (B, H, T, D / 2, 2)
    return turned.flatten(-2)  # pair by pair again


def rope_attention(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
    """q, k (B, H, T, D), v (B, H, T, Dv), positions (T,) or (B, T) -> (B, H, T, Dv). No mask."""
    # Both are turned by their own positions, so a score depends on the difference of the two alone.
    q, k = apply_rope(q, positions), apply_rope(k, positions)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, T, T)
    return scores.softmax(dim=-1) @ v
