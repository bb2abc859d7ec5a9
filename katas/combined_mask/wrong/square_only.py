# breaks: mask_shape
# mistake: none
import math

import torch


def combine_masks(keep, causal):
    T = keep.shape[1]
    return keep.reshape(-1, 1, 1, T).expand(-1, 1, T, T) & causal.reshape(1, 1, T, T)


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    weights = weights.masked_fill(~mask, 0.0)
    return weights @ v
