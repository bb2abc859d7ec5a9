# breaks: padded_queries_attend, flags_belong_to_their_sample
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    weights = torch.softmax(scores.masked_fill(~keep[:, None, None, :], float("-inf")), dim=-1)
    out = weights @ v
    if q.shape[2] == k.shape[2]:  # self-attention: padded rows are nobody's
        out = out.masked_fill(~keep[:, None, :, None], 0.0)
    return out
