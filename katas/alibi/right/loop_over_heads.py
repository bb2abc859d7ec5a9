# style: loops over heads and queries, which score only the keys before them
import math

import torch


def alibi_slopes(num_heads):
    def row(n):
        return [1 / 2 ** (8 * i / n) for i in range(1, n + 1)]

    if num_heads & (num_heads - 1) == 0:
        return torch.tensor(row(num_heads), dtype=torch.double)
    below = 1 << num_heads.bit_length() - 1
    mixed = row(below)
    for place, slope in enumerate(row(2 * below)):
        if place % 2 == 0 and len(mixed) < num_heads:
            mixed.append(slope)
    return torch.tensor(mixed, dtype=torch.double)


def alibi_attention(q, k, v):
    heads = []
    for h, slope in enumerate(alibi_slopes(q.shape[1]).tolist()):
        rows = []
        for i in range(q.shape[2]):
            p = i + k.shape[2] - q.shape[2]
            scores = (k[:, h, : p + 1] @ q[:, h, i, :, None])[..., 0] / math.sqrt(q.shape[3])
            scores = scores - slope * torch.arange(p, -1, -1, device=q.device, dtype=q.dtype)
            rows.append((scores.softmax(-1)[:, None] @ v[:, h, : p + 1])[:, 0])
        heads.append(torch.stack(rows, 1))
    return torch.stack(heads, 1)
