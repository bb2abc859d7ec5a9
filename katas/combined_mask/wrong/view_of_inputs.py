# breaks: non_contiguous_inputs
# mistake: layout.view_of_strided
import math

import torch


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    B, H, Tq, D = q.shape
    flat = q.view(B * H, Tq, D) @ k.view(B * H, -1, D).transpose(1, 2)
    scores = flat.view(B, H, Tq, -1) / math.sqrt(D)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    weights = weights.masked_fill(~mask, 0.0)
    return weights @ v
