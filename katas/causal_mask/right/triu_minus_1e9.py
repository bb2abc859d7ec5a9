# style: triu of what is forbidden, -1e9, the whole square mask cut to its last rows
# edge fails: half_precision
import math

import torch
import torch.nn.functional as F


def causal_mask(n_q, n_k, device=None):
    forbidden = torch.triu(torch.ones(n_k, n_k, device=device), diagonal=1).bool()
    return torch.logical_not(forbidden)[-n_q:]


def causal_attention(query, key, value):
    scores = query @ key.mT
    scores = scores.masked_fill_(causal_mask(query.shape[2], key.shape[2], query.device) == 0, -1e9)
    scores = scores / math.sqrt(query.shape[3])
    return F.softmax(scores, dim=-1) @ value
