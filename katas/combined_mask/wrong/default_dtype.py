# breaks: output_dtype
# mistake: numerics.default_dtype
import math

import torch


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    weights = weights.masked_fill(~mask, 0.0)
    out = torch.zeros(*q.shape[:-1], v.size(-1), device=q.device)
    out[:] = weights @ v
    return out
