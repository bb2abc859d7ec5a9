# breaks: mask_where_both_allow
# mistake: none
import math

import torch


def combine_masks(keep, causal):
    Tq, Tk = causal.shape
    triangle = torch.ones(Tq, Tk, dtype=torch.bool, device=keep.device).tril(max(0, Tk - Tq))
    return keep[:, None, None, :] & triangle


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    weights = weights.masked_fill(~mask, 0.0)
    return weights @ v
