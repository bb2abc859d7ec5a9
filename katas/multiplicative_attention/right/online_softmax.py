# style: keys in chunks with a running maximum and sum
import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    chunk = 3

    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, query, keys, values, keep=None):
        self.calls += 1
        best = torch.full_like(query[..., :1], torch.finfo(query.dtype).min)
        total = torch.zeros_like(best)
        mixed = 0
        for start in range(0, keys.shape[1], self.chunk):
            part = slice(start, start + self.chunk)
            scores = query @ self.k_proj(keys[:, part]).mT
            if keep is not None:
                scores = scores.masked_fill(~keep[:, None, part], -torch.inf)
            higher = torch.maximum(best, scores.amax(-1, keepdim=True)).detach()
            shrink, exps = (best - higher).exp(), (scores - higher).exp()
            total = total * shrink + exps.sum(-1, keepdim=True)
            mixed = mixed * shrink + exps @ values[:, part]
            best = higher
        return mixed / torch.where(total == 0, 1, total)
