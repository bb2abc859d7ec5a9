# breaks: lengths_unmodified
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    mask = torch.zeros(lengths.shape[0], max_len, dtype=torch.bool, device=lengths.device)
    for t in range(max_len):
        mask[:, t] = lengths > 0
        lengths -= 1
    return mask


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
