# style: the textbook lines: maximum, exp, sum; 0 and 1 stand in where nothing is left
# edge fails: gradients_of_empty_parts
import math

import torch


def partial_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    m = scores.amax(dim=-1, keepdim=True)
    m = m.masked_fill(m == float("-inf"), 0.0)
    e = torch.exp(scores - m)
    total = e.sum(dim=-1, keepdim=True)
    out = (e @ v) / total.masked_fill(total == 0, 1.0)
    lse = (m + total.log()).squeeze(-1)
    return out, lse


def merge_partials(out_a, lse_a, out_b, lse_b):
    m = torch.maximum(lse_a, lse_b)
    m = m.masked_fill(m == float("-inf"), 0.0)
    a = torch.exp(lse_a - m)
    b = torch.exp(lse_b - m)
    total = a + b
    out = a.unsqueeze(-1) * out_a + b.unsqueeze(-1) * out_b
    out = out / total.masked_fill(total == 0, 1.0).unsqueeze(-1)
    return out, m + total.log()
