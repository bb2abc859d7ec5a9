# breaks: values
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    dtype = q.dtype
    q, k, v = q.bfloat16(), k.bfloat16(), v.bfloat16()
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
    return (torch.softmax(scores, dim=-1) @ v).to(dtype)
