# style: context in chunks with a running maximum and sum; nothing kept gives 0 by itself
import torch
from torch import nn


class CrossAttention(nn.Module):
    chunk = 4

    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("no")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(context_dim, embed_dim)
        self.v_proj = nn.Linear(context_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def heads(self, y):
        return torch.stack(y.chunk(self.num_heads, dim=-1), dim=1)

    def forward(self, x, context, keep=None):
        q = self.heads(self.q_proj(x))
        q = q / q.size(-1) ** 0.5
        if keep is None:
            keep = torch.ones(context.shape[:2], dtype=torch.bool, device=context.device)
        low = torch.finfo(q.dtype).min / 4
        best, total, mixed = torch.full_like(q[..., :1], low), torch.zeros_like(q[..., :1]), torch.zeros_like(q)
        for part, flags in zip(context.split(self.chunk, 1), keep.split(self.chunk, 1)):
            k, v = self.heads(self.k_proj(part)), self.heads(self.v_proj(part))
            scores = (q @ k.transpose(2, 3)).masked_fill(~flags[:, None, None], -torch.inf)
            higher = torch.maximum(best, scores.amax(-1, keepdim=True)).detach()
            p, shrink = (scores - higher).exp(), (best - higher).exp()
            total = total * shrink + p.sum(-1, keepdim=True)
            mixed = mixed * shrink + p @ v
            best = higher
        mixed = torch.where(total > 0, mixed / total.masked_fill(total == 0, 1), 0)
        return self.o_proj(torch.cat(mixed.unbind(1), -1))
