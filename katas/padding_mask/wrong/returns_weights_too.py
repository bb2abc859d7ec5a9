# breaks: output_shape
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.masked_fill(~keep[:, None, None, :], float("-inf")).softmax(dim=-1)
    return weights @ v, weights
