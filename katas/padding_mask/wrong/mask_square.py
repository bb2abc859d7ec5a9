# breaks: padded_queries_attend
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    allowed = keep[:, None, None, :]
    if q.shape[2] == k.shape[2]:
        allowed = allowed & keep[:, None, :, None]
    return torch.softmax(scores.masked_fill(~allowed, -1e9), dim=-1) @ v
