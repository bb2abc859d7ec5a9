# breaks: mask_takes_any_lengths
# mistake: none
import math

import torch


def padding_mask(lengths, max_len):
    # one_hot marks the first padded position; what comes before it is real
    first = torch.nn.functional.one_hot(lengths, max_len + 1)
    return first.cumsum(dim=1)[:, :-1] == 0


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
