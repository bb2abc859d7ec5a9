# style: blocks of queries, each against the sinks and its own stretch of keys; folded batch and heads
import math

import torch


def sliding_window_mask(num_queries, num_keys, window, sinks=0, device=None):
    if window < 1 or sinks < 0:
        raise ValueError("sliding_window_mask: window >= 1, sinks >= 0")
    rows = torch.arange(num_queries, device=device) + (num_keys - num_queries)
    return allowed(rows, torch.arange(num_keys, device=device), window, sinks)


def allowed(p, j, window, sinks):
    p = p.view(-1, 1)
    return torch.logical_and(p >= j, torch.logical_or(p < j + window, j < sinks))


def sliding_window_attention(q, k, v, window, sinks=0):
    if window < 1 or sinks < 0:
        raise ValueError("sliding_window_attention: window >= 1, sinks >= 0")
    B, H, Tq, D = q.shape
    Tk = k.shape[2]
    q, k, v = (part.reshape(B * H, part.shape[2], part.shape[3]) for part in (q, k, v))
    out = q.new_empty(B * H, Tq, v.shape[2])
    for start in range(0, Tq, 8):
        stop = min(start + 8, Tq)
        p = torch.arange(start, stop, device=q.device) + Tk - Tq
        first = max(0, Tk - Tq + start - window + 1)
        keys = [*range(min(sinks, first)), *range(first, Tk - Tq + stop)]
        j = torch.tensor(keys, device=q.device)
        scores = torch.bmm(q[:, start:stop], k[:, j].transpose(1, 2)) / math.sqrt(D)
        scores = scores.masked_fill(~allowed(p, j, window, sinks), -math.inf)
        out[:, start:stop] = torch.bmm(scores.softmax(-1), v[:, j])
    return out.view(B, H, Tq, -1)
