# style: loops over samples and heads, scripted, -1e4 as the fill
# edge fails: large_scores
import math

import torch


@torch.jit.script
def one_head(q, k, v, mask):
    scores = torch.matmul(q, k.t()) / math.sqrt(float(q.size(1)))
    return torch.matmul(torch.softmax(scores.masked_fill(mask == 0, -1e4), dim=1), v)


def causal_mask(num_queries, num_keys, device=None):
    square = torch.zeros(num_keys, num_keys, device=device)
    i, j = torch.tril_indices(num_keys, num_keys, device=device)
    square[i, j] = 1
    return square[num_keys - num_queries :].to(torch.bool)


def causal_attention(q, k, v):
    out = q.new_empty(*q.shape[:3], v.shape[3])
    mask = causal_mask(q.shape[2], k.shape[2], q.device)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            out[b, h] = one_head(q[b, h], k[b, h], v[b, h], mask)
    return out
