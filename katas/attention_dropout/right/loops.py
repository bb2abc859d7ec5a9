# style: loops over samples and heads, exp by hand
import math

import torch


def check(p):
    if 0 <= p < 1:
        return
    raise ValueError("p has to be at least 0 and below 1, got %r" % p)


def one_head(q, k, v, p, training):
    scores = q @ k.T / math.sqrt(q.shape[1])
    exps = (scores - scores.amax(1, keepdim=True)).exp()
    weights = exps / exps.sum(1, keepdim=True)
    if training:
        weights = torch.where(torch.empty_like(weights).uniform_() < 1 - p, weights / (1 - p), 0.0)
    return weights @ v


def attention_with_dropout(q, k, v, p, training):
    check(p)
    out = [[one_head(q[b, h], k[b, h], v[b, h], p, training) for h in range(q.shape[1])] for b in range(q.shape[0])]
    return torch.stack([torch.stack(heads) for heads in out])
