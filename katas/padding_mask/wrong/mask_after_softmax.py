# breaks: values_with_padding, weights_sum_to_one, one_real_key
# mistake: mask.after_softmax
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=-1)
    weights = weights.masked_fill(~keep[:, None, None, :], 0)
    return weights @ v
