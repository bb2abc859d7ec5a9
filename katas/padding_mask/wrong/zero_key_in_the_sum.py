# breaks: values, weights_sum_to_one, one_real_key
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
    nothing = torch.zeros_like(scores[..., :1])  # so that no row is empty
    weights = torch.softmax(torch.cat([scores, nothing], dim=-1), dim=-1)[..., :-1]
    return weights @ v
