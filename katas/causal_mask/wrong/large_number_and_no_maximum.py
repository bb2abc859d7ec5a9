# breaks: mask_device, large_scores
# mistake: numerics.no_max
import math

import torch


def causal_mask(num_queries, num_keys, device=None):
    return torch.ones(num_queries, num_keys, dtype=torch.bool).tril(num_keys - num_queries)


def causal_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    mask = causal_mask(q.shape[-2], k.shape[-2]).to(q.device)
    e = scores.exp() * mask
    weights = e / e.sum(-1, keepdim=True)
    return weights @ v
