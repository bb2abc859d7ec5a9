import math

import torch


def scaled_dot_product_attention(Q, K, V, mask=None):
    """mask: True at the positions to leave out. Returns the weights and the output."""
    d_k = Q.shape[-1]
    scores = Q @ K.transpose(-1, -2)
    scores = scores / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    output = weights @ V
    return weights, output
