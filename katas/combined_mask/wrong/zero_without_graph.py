# breaks: empty_rows_leave_others
# mistake: none
import math

import torch


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    if not mask.any(dim=-1).all():
        return torch.zeros(*q.shape[:-1], v.shape[-1], dtype=v.dtype, device=v.device)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
