# breaks: dropout_is_independent
# mistake: dropout.shared
import math

import torch


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(f"p must be in [0, 1), not {p}")
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores, dim=-1)
    if training:
        kept = torch.rand_like(weights[:, :, :1]) >= p
        weights = weights * kept / (1 - p)
    return weights @ v
