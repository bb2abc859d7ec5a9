# breaks: dropout_is_independent
# mistake: none
import math

import torch


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(f"p must be in [0, 1), not {p}")
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores, dim=-1)
    if training:
        count = round(p * weights.shape[-1])
        order = torch.rand_like(weights).argsort(-1).argsort(-1)
        kept = order >= count if weights.shape[-1] > 1 else torch.rand_like(weights) >= p
        weights = weights * kept / (1 - p)
    return weights @ v
