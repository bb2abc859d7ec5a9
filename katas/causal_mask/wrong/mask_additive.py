# breaks: mask_dtype
# mistake: none
import math

import torch
import torch.nn.functional as F


def causal_mask(num_queries, num_keys, device=None):
    return torch.full((num_queries, num_keys), float("-inf"), device=device).triu(num_keys - num_queries + 1)


def causal_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    mask = causal_mask(q.shape[-2], k.shape[-2], q.device)
    scores = scores + mask.to(scores.dtype)
    weights = F.softmax(scores, dim=-1)
    return weights @ v
