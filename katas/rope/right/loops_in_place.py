# style: a loop over pairs into a new tensor; exp by hand without the maximum
# edge fails: large_scores
import math

import torch


def apply_rope(x, positions, base=10000.0):
    D = x.shape[3]
    if D % 2 > 0:
        raise ValueError("odd")
    out = torch.empty_like(x)
    p = positions.to(torch.float64)
    p = p[:, None, :] if p.dim() == 2 else p[None, None, :]
    for i in range(D // 2):
        a = p * base ** (-2 * i / D)
        c, s = torch.cos(a).to(x.dtype), torch.sin(a).to(x.dtype)
        out[..., 2 * i] = x[..., 2 * i] * c - x[..., 2 * i + 1] * s
        out[..., 2 * i + 1] = x[..., 2 * i] * s + x[..., 2 * i + 1] * c
    return out


def rope_attention(q, k, v, positions):
    q, k = apply_rope(q, positions), apply_rope(k, positions)
    e = (q @ k.mT / math.sqrt(q.shape[3])).exp()
    return (e / e.sum(-1, keepdim=True)) @ v
