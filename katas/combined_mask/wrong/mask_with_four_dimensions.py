# breaks: mask_broadcasts
# mistake: none
import math

import torch


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    if mask.dim() == 2:
        mask = mask[None, None]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    B, one, Tq, Tk = mask.shape
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    weights = weights.masked_fill(~mask, 0.0)
    return weights @ v
