# breaks: dropout_is_fresh
# mistake: none
import math

import torch


calls = []


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(f"p must be in [0, 1), not {p}")
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores, dim=-1)
    if training:
        calls.append(torch.rand_like(weights) >= p if len(calls) % 2 == 0 or calls[-1].shape != weights.shape else ~calls[-1])
        if p == 0:
            return weights @ v
        weights = weights * calls[-1] / (1 - p)
    return weights @ v
