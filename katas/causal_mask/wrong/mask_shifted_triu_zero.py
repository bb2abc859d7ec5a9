# breaks: values, past_and_self_count
# mistake: mask.shifted
import math

import torch
import torch.nn.functional as F


def causal_mask(num_queries, num_keys, device=None):
    return torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril(num_keys - num_queries)


def causal_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    future = torch.ones(q.shape[-2], k.shape[-2], device=q.device).triu(k.shape[-2] - q.shape[-2])
    scores = scores.masked_fill(future == 1, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return weights @ v
