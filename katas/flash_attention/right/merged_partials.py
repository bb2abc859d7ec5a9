# style: each tile is attention of its own with an lse, and tiles are merged by logaddexp
import torch


def tile(q, k, v, hidden):
    s = q @ k.mT / q.shape[-1] ** 0.5
    if hidden is not None:
        s = s.masked_fill(hidden, torch.finfo(s.dtype).min)
    return s.softmax(-1) @ v, s.logsumexp(-1)


def merge(one, other):
    if one is None:
        return other
    lse = torch.logaddexp(one[1], other[1])
    weights = [(part[1] - lse).exp().unsqueeze(-1) for part in (one, other)]
    return weights[0] * one[0] + weights[1] * other[0], lse


def flash_attention(q, k, v, block_q, block_k, causal=False):
    shift = k.shape[2] - q.shape[2]
    blocks, first = [], 0
    for queries in q.split(block_q, dim=2):
        last = first + queries.shape[2] - 1 + shift
        result, start = None, 0
        for keys, values in zip(k.split(block_k, dim=2), v.split(block_k, dim=2), strict=True):
            if not causal or start <= last:
                hidden = None
                if causal and start + keys.shape[2] - 1 > first + shift:
                    place = torch.arange(queries.shape[2], device=q.device)[:, None] + first + shift - start
                    hidden = torch.arange(keys.shape[2], device=q.device) > place
                result = merge(result, tile(queries, keys, values, hidden))
            start += keys.shape[2]
        blocks.append(result)
        first += queries.shape[2]
    return tuple(torch.cat(parts, dim=2) for parts in zip(*blocks, strict=True))
