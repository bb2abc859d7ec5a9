# breaks: output_shape
# mistake: none
import math

import torch
import torch.nn.functional as F


def causal_mask(num_queries, num_keys, device=None):
    return torch.ones(num_queries, num_keys, dtype=torch.bool, device=device).tril(num_keys - num_queries)


BIAS = torch.tril(torch.ones(128, 128)).bool()


def causal_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    tq, tk = q.shape[-2], k.shape[-2]
    mask = BIAS[tk - tq : tk, :tk].to(q.device)
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return weights @ v
