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
        draw = torch.rand_like(weights)
        if draw.shape[-1] == draw.shape[-2]:
            draw = torch.where(torch.ones_like(draw[0, 0]).tril().bool(), draw, draw.mT)
        weights = weights * (draw >= p) / (1 - p)
    return weights @ v
