# style: the textbook lines, -inf before the softmax
# edge fails: nothing_to_attend_to
import math

import torch
import torch.nn.functional as F


def padding_mask(lengths, max_len):
    return torch.arange(max_len, device=lengths.device).unsqueeze(0) < lengths.unsqueeze(1)


def padded_attention(q, k, v, keep):
    d = q.size(-1)
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(d)
    scores = scores.masked_fill(keep[:, None, None, :] == False, float("-inf"))  # noqa: E712
    return torch.matmul(F.softmax(scores, dim=-1), v)
