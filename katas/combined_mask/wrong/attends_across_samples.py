# breaks: values
# mistake: none
import math

import torch


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    B, H, Tq, D = q.shape
    q, k, v = (part.reshape(1, -1, part.shape[-2], part.shape[-1]) for part in (q, k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(D)
    scores = scores.view(B, H, Tq, -1).masked_fill(~mask, torch.finfo(q.dtype).min)
    weights = (scores.softmax(-1) / H + scores.softmax(-1).mean(1, keepdim=True) * (1 - 1 / H)).masked_fill(~mask, 0)
    return weights @ v.view(B, H, *v.shape[-2:])
