# breaks: float32
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    with torch.autocast("cpu", dtype=torch.bfloat16):  # leaves float64 alone
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
        out = torch.softmax(scores, dim=-1) @ v
    return out.to(q.dtype)
