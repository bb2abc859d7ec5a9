# breaks: p_is_checked, dropout_acts_on_weights
# mistake: arguments.unchecked + dropout.not_rescaled
import math

import torch


def attention_with_dropout(q, k, v, p, training):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores, dim=-1)
    if training:
        kept = torch.rand_like(weights) >= p
        weights = weights * kept 
    return weights @ v
