# style: online softmax over chunks of keys, as flash attention does, chunks that nobody sees skipped
import math

import torch

CHUNK = 3


def causal_mask(num_queries, num_keys, device=None):
    i = torch.arange(num_queries, device=device).unsqueeze(1)
    j = torch.arange(num_keys, device=device).unsqueeze(0)
    return j - i <= num_keys - num_queries


def causal_attention(q, k, v):
    Tq, Tk = q.shape[-2], k.shape[-2]
    offset = Tk - Tq
    pos_q = torch.arange(Tq, device=q.device) + offset
    m = torch.full(q.shape[:-1], -math.inf, dtype=q.dtype, device=q.device)
    total = torch.zeros_like(m)
    acc = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
    for start in range(0, Tk, CHUNK):
        stop = min(start + CHUNK, Tk)
        kc, vc = k[..., start:stop, :], v[..., start:stop, :]
        s = q @ kc.transpose(-1, -2) / math.sqrt(q.shape[-1])
        pos_k = torch.arange(start, stop, device=q.device)
        s = s.masked_fill(pos_k[None, :] > pos_q[:, None], -math.inf)
        # key 0 is seen by every query, so m is finite after the first chunk
        new_m = torch.maximum(m, s.amax(dim=-1))
        p = torch.exp(s - new_m[..., None])
        keep = torch.exp(m - new_m)
        total = total * keep + p.sum(dim=-1)
        acc = acc * keep[..., None] + p @ vc
        m = new_m
    return acc / total[..., None]
