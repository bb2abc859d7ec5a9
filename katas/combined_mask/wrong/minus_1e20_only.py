# breaks: empty_rows_get_zero
# mistake: mask.empty_row
import math

import torch


def combine_masks(keep, causal):
    return keep[:, None, None, :] & causal


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(mask == 0, float("-1e20"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ v
