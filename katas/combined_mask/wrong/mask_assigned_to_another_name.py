# breaks: values_with_mask
# mistake: mask.lost
import math

import torch


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    att = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    attn = att.masked_fill(mask == 0, float("-inf"))
    weights = torch.softmax(att, dim=-1)
    return weights @ v
