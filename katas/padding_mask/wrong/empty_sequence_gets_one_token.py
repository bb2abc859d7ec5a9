# breaks: mask_of_empty_and_full
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    last = (lengths - 1).clamp(min=0)  # index of the last real token
    return torch.arange(max_len, device=lengths.device) <= last.unsqueeze(-1)


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
