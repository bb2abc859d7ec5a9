# breaks: mask_where_both_allow
# mistake: mask.lost
import math

import torch


def combine_masks(keep, causal):
    B, Tk = keep.shape
    Tq = causal.shape[0]
    mask = causal.view(1, 1, Tq, Tk).expand(B, 1, Tq, Tk) if causal.is_contiguous() else causal.repeat(B, 1, 1, 1)
    return mask


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    weights = weights.masked_fill(~mask, 0.0)
    return weights @ v
