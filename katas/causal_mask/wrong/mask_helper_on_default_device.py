# breaks: mask_device, device
# mistake: device.default
import math

import torch
import torch.nn.functional as F


def causal_mask(num_queries, num_keys, device=None):
    offset = num_keys - num_queries
    rows = torch.arange(num_queries)[:, None] + offset
    return torch.arange(num_keys, device=device) <= rows


def causal_attention(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    mask = causal_mask(q.shape[-2], k.shape[-2], q.device)
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return weights @ v
