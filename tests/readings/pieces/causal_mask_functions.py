import math

import torch


def subsequent_mask(size):
    "Mask out later positions: True may be attended to."
    attn_shape = (1, size, size)
    later = torch.triu(torch.ones(attn_shape), diagonal=1)
    return later == 0


def causal_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~subsequent_mask(query.size(-2)), float("-inf"))
    return scores.softmax(dim=-1) @ value
