# breaks: values, samples_and_heads_are_independent
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    scores = q[0] @ k[0].transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = scores.masked_fill(~keep[0], float("-inf")).softmax(dim=-1)
    return (weights @ v[0]).expand(q.shape[0], -1, -1, -1)
