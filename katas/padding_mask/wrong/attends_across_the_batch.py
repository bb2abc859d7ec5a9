# breaks: values, samples_and_heads_are_independent
# mistake: layout.batch_as_time
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    B, H, Tk, D = k.shape
    k = k.transpose(0, 1).reshape(1, H, B * Tk, D)
    v = v.transpose(0, 1).reshape(1, H, B * Tk, -1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(D)
    scores = scores.masked_fill(~keep.reshape(1, 1, 1, B * Tk), float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
