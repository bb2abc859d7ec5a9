# style: -inf by masked_fill, whose gradient is 0 where it fills, and nan_to_num on the weights
import math

import torch


def combine_masks(keep, causal):
    return keep.unsqueeze(1).unsqueeze(2) * causal


def masked_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return weights.nan_to_num(nan=0.0) @ v
