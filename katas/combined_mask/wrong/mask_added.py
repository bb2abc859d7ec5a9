# breaks: values_with_mask
# mistake: mask.added
import math

import torch


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores + mask
    weights = torch.softmax(scores, dim=-1)
    return weights @ v
