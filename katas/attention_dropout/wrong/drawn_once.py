# breaks: dropout_is_fresh
# mistake: dropout.drawn_once
import math

import torch


kept_of = {}


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(f"p must be in [0, 1), not {p}")
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores, dim=-1)
    if training:
        if weights.shape not in kept_of:
            kept_of[weights.shape] = torch.rand_like(weights)
        weights = weights * (kept_of[weights.shape] >= p) / (1 - p)
    return weights @ v
