# breaks: mask_marks_real_tokens, mask_of_empty_and_full
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    # positions are small numbers, int8 saves memory
    positions = torch.ones(max_len, dtype=torch.int8, device=lengths.device).cumsum(0, dtype=torch.int8)
    return positions[None, :] <= lengths[:, None]


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
