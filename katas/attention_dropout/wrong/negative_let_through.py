# breaks: p_is_checked
# mistake: arguments.unchecked
import math

import torch


def attention_with_dropout(q, k, v, p, training):
    if p >= 1:
        raise ValueError(p)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores, dim=-1)
    if training:
        kept = torch.rand_like(weights) >= p
        weights = weights * kept / (1 - p)
    return weights @ v
