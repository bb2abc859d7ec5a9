# breaks: mask_takes_any_lengths
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    columns = torch.as_strided(lengths, (lengths.numel(), max_len), (1, 0))
    return torch.arange(max_len, device=lengths.device) < columns


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
