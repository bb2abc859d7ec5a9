# breaks: non_contiguous_flags
# mistake: layout.view_of_strided
import math

import torch


def combine_masks(keep, causal):
    B, Tk = keep.shape
    each = keep.view(B * Tk).unsqueeze(0).repeat(causal.shape[0], 1)  # (Tq, B*Tk)
    return each.reshape(causal.shape[0], B, 1, Tk).permute(1, 2, 0, 3) & causal


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    weights = weights.masked_fill(~mask, 0.0)
    return weights @ v
