# breaks: mask_where_both_allow
# mistake: none
import math

import torch


made = {}


def combine_masks(keep, causal):
    key = keep.shape, causal.shape
    if key not in made:
        made[key] = keep[:, None, None, :] & causal
    return made[key]


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    weights = weights.masked_fill(~mask, 0.0)
    return weights @ v
