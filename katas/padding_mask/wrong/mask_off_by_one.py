# breaks: mask_marks_real_tokens, mask_of_empty_and_full
# mistake: mask.shifted
import math

import torch


def padding_mask(lengths, max_len):
    positions = torch.arange(max_len, device=lengths.device)
    return positions.unsqueeze(0) <= lengths.unsqueeze(1)


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
