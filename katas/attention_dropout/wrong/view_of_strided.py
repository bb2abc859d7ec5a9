# breaks: non_contiguous_inputs
# mistake: layout.view_of_strided
import math

import torch
import torch.nn.functional as F


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(f"p must be in [0, 1), not {p}")
    B, H, Tq, D = q.shape
    flat = q.view(B * H, Tq, D) @ k.view(B * H, -1, D).transpose(1, 2)
    scores = flat.view(B, H, Tq, -1) / math.sqrt(D)
    weights = torch.softmax(scores, dim=-1)
    weights = F.dropout(weights, p, training)
    return weights @ v
