# style: the two parts stacked, one softmax over them; the merge written for any number of parts
# edge fails: gradients_of_empty_parts
from typing import NamedTuple

import torch
from torch import Tensor


class Part(NamedTuple):
    out: Tensor
    lse: Tensor


def merged(parts):
    lse = torch.stack([part.lse for part in parts])  # (parts, ..., Tq)
    weights = torch.nan_to_num(lse.softmax(0), nan=0.0)
    outs = torch.stack([part.out for part in parts])
    return Part((weights.unsqueeze(-1) * outs).sum(0), lse.logsumexp(0))


def partial_attention(q, k, v, mask=None):
    scores = (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill_(mask == 0, float("-inf"))
    weights = torch.nan_to_num(scores.softmax(-1))
    return Part((weights.unsqueeze(-1) * v.unsqueeze(-3)).sum(-2), scores.logsumexp(-1))


def merge_partials(out_a, lse_a, out_b, lse_b):
    return merged([Part(out_a, lse_a), Part(out_b, lse_b)])
