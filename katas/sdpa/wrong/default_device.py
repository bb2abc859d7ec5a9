# breaks: device
# mistake: device.default
import math

import torch


def scaled_dot_product_attention(q, k, v):
    scores = torch.zeros(*q.shape[:-1], k.shape[-2], dtype=q.dtype)
    for j in range(k.shape[-2]):
        scores[..., j] = (q * k[..., j : j + 1, :]).sum(-1) / math.sqrt(q.shape[-1])
    return scores.softmax(-1) @ v
