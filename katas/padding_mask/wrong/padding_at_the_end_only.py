# breaks: real_tokens_anywhere, padded_keys_do_not_matter
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    length = keep.shape[1] - keep.flip(1).int().argmax(dim=1)  # up to the last real key
    real = torch.arange(keep.shape[1], device=keep.device) < length[:, None]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~real[:, None, None, :], -1e9)
    return torch.softmax(scores, dim=-1) @ v
