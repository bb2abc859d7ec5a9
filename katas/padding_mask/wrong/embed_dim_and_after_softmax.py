# breaks: values, weights_sum_to_one, one_real_key
# mistake: scale.embed_dim + mask.after_softmax
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    B, H, Tq, D = q.shape
    weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(H * D), dim=-1)
    return (weights * keep[:, None, None, :]) @ v
