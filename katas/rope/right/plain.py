# style: even and odd columns, angles in float32
# edge fails: float64_throughout
import math

import torch


def apply_rope(x, positions, base=10000.0):
    D = x.shape[-1]
    if D % 2 != 0:
        raise ValueError(f"D must be even, not {D}")
    freqs = base ** (-torch.arange(0, D, 2, device=x.device).float() / D)
    angles = positions.float()[..., None] * freqs
    if positions.dim() == 2:
        angles = angles[:, None]
    cos = torch.cos(angles).to(x.dtype)
    sin = torch.sin(angles).to(x.dtype)
    x0 = x[..., 0::2]
    x1 = x[..., 1::2]
    out = torch.stack([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)
    return out.flatten(-2)


def rope_attention(q, k, v, positions):
    q = apply_rope(q, positions)
    k = apply_rope(k, positions)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ v
