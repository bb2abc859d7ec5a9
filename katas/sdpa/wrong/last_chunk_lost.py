# breaks: values
# mistake: none
import math

import torch


def scaled_dot_product_attention(q, k, v):
    chunk = min(2, k.shape[-2])
    top = bottom = 0
    for i in range(k.shape[-2] // chunk):
        part = slice(i * chunk, (i + 1) * chunk)
        e = torch.exp(q @ k[..., part, :].transpose(-2, -1) / math.sqrt(q.shape[-1]))
        top, bottom = top + e @ v[..., part, :], bottom + e.sum(-1, keepdim=True)
    return top / bottom
