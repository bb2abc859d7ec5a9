# breaks: real_tokens_anywhere
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


def padded_attention(q, k, v, keep):
    place = torch.arange(keep.shape[1], device=keep.device)
    first = keep.int().argmax(dim=1, keepdim=True)
    inside = (place >= first) & (place < first + keep.sum(dim=1, keepdim=True))
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~inside[:, None, None, :], float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
