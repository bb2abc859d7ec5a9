# style: an early return: with one key there is nothing to average
# edge fails: own_memory
from math import sqrt

import torch


def causal_mask(num_queries, num_keys, device=None):
    cpu = torch.tril(torch.ones(num_queries, num_keys, dtype=torch.int64), num_keys - num_queries)
    mask = cpu != 0
    return mask if device is None else mask.to(device)


def causal_attention(q, k, v):
    if k.shape[-2] == 1:
        return v
    scores = torch.matmul(q / sqrt(q.shape[-1]), k.transpose(2, 3))
    if q.shape[-2] > 1:  # a single query is the last one and sees every key
        scores[..., ~causal_mask(q.shape[-2], k.shape[-2], q.device)] = -torch.inf
    return torch.matmul((scores - scores.logsumexp(-1, keepdim=True)).exp(), v)
