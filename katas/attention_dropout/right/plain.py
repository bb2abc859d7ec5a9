# style: the textbook lines, one after the other
import math

import torch
import torch.nn.functional as F


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(f"p must be in [0, 1), not {p}")
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores, dim=-1)
    weights = F.dropout(weights, p, training)
    return weights @ v
