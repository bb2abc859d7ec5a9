# style: the textbook lines, F.dropout with training=
import math

import torch
import torch.nn.functional as F


def attention_with_dropout(q, k, v, p, training):
    if p < 0 or p >= 1:
        raise ValueError("p must be in [0, 1)")
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    weights = F.softmax(scores, dim=-1)
    weights = F.dropout(weights, p=p, training=training)
    return torch.matmul(weights, v)
