# breaks: gradients_in_training
# mistake: gradient.detached
import math

import torch
import torch.nn.functional as F


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(f"p must be in [0, 1), not {p}")
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores, dim=-1)
    if training and p > 0:
        weights = F.dropout(weights.detach(), p)
    return weights @ v
