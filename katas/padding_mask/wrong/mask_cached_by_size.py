# breaks: mask_marks_real_tokens
# mistake: none
import math
from functools import cache

import torch


class Lengths:
    def __init__(self, lengths):
        self.lengths = lengths

    def __hash__(self):
        return len(self.lengths)

    def __eq__(self, other):
        return len(self.lengths) == len(other.lengths)


@cache
def build(lengths, max_len):
    return torch.arange(max_len, device=lengths.lengths.device) < lengths.lengths[:, None]


def padding_mask(lengths, max_len):
    return build(Lengths(lengths), max_len)


def padded_attention(q, k, v, keep):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~keep[:, None, None, :], float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
