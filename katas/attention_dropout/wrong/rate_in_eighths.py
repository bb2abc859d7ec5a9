# breaks: dropout_rate
# mistake: none
import math

import torch


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(f"p must be in [0, 1), not {p}")
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores, dim=-1)
    if training and p > 0:
        draw = torch.randint(0, 8, weights.shape, device=weights.device) / 8
        weights = torch.where(draw < p, 0.0, weights / (1 - p))
    return weights @ v
