# breaks: values_with_padding, padded_keys_do_not_matter
# mistake: mask.zero_fill
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep[:, None, None, :], 1e-9)
    return torch.softmax(scores, dim=-1) @ v
