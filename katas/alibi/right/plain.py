# style: slopes from a list by the formula, then the textbook lines
import math

import torch


def alibi_slopes(num_heads):
    power = 2 ** math.floor(math.log2(num_heads))
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    double = [2 ** (-8 * (h + 1) / (2 * power)) for h in range(2 * power)]
    slopes = slopes + double[0::2][: num_heads - power]
    return torch.tensor(slopes, dtype=torch.float64)


def alibi_attention(q, k, v):
    Tq, Tk = q.shape[-2], k.shape[-2]
    i = torch.arange(Tq, device=q.device)[:, None] + Tk - Tq
    j = torch.arange(Tk, device=q.device)[None, :]
    slopes = alibi_slopes(q.shape[1]).to(q.device, q.dtype)

    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores - slopes[:, None, None] * (i - j)
    scores = scores.masked_fill(j > i, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ v
