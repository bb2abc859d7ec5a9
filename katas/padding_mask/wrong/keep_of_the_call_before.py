# breaks: values_with_padding
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


memory = {}


def padded_attention(q, k, v, keep):
    keep, memory[keep.shape] = memory.get(keep.shape, keep), keep
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep[:, None, None, :], -1e9)
    return torch.softmax(scores, dim=-1) @ v
