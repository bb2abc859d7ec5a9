# breaks: values
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device)[None, :] < lengths[:, None]


BLOCK = 64


def padded_attention(q, k, v, keep):
    best = q.new_full(q.shape[:-1] + (1,), -1e30)
    total, mixed = torch.zeros_like(best), 0
    for start in range(0, max(k.shape[2] - BLOCK, 0) + 1, BLOCK):  # the last, shorter block is missing
        end = start + BLOCK
        scores = q @ k[:, :, start:end].transpose(-2, -1) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(~keep[:, None, None, start:end], float("-inf"))
        higher = torch.maximum(best, scores.amax(dim=-1, keepdim=True))
        part, shrink = torch.exp(scores - higher), torch.exp(best - higher)
        total, mixed = total * shrink + part.sum(dim=-1, keepdim=True), mixed * shrink + part @ v[:, :, start:end]
        best = higher
    return mixed / total
