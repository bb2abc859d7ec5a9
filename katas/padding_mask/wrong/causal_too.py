# breaks: values, real_keys_matter
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    Tq, Tk = q.shape[2], k.shape[2]
    causal = torch.ones(Tq, Tk, dtype=torch.bool, device=q.device).tril()
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~(keep[:, None, None, :] & causal), -1e9)
    return torch.softmax(scores, dim=-1) @ v
