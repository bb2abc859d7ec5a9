# style: positions compared, then the textbook lines
import math

import torch


def sliding_window_mask(num_queries, num_keys, window, sinks=0, device=None):
    if window < 1 or sinks < 0:
        raise ValueError(f"{window=} {sinks=}")
    i = torch.arange(num_queries, device=device)[:, None] + num_keys - num_queries
    j = torch.arange(num_keys, device=device)[None, :]
    causal = j <= i
    near = i - j < window
    sink = j < sinks
    return causal & (near | sink)


def sliding_window_attention(q, k, v, window, sinks=0):
    mask = sliding_window_mask(q.shape[-2], k.shape[-2], window, sinks, q.device)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ v
