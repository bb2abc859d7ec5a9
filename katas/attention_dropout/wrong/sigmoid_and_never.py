# breaks: values, weights_sum_to_one, something_is_dropped
# mistake: softmax.sigmoid + dropout.never
import math

import torch


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(f"p must be in [0, 1), not {p}")
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.sigmoid(scores)
    return weights @ v
