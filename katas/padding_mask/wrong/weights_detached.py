# breaks: gradients
# mistake: gradient.detached
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    with torch.no_grad():
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
    return weights @ v
