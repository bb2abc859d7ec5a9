# style: no matrix product between q and k: products broadcast and summed; exp, logsumexp; all-True mask where none is given
# edge fails: nothing_to_attend_to
import math

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        if math.gcd(embed_dim, num_heads) != num_heads:
            raise ValueError(f"embed_dim={embed_dim}, num_heads={num_heads}")
        self.num_heads = num_heads
        self.q_proj, self.k_proj = nn.Linear(embed_dim, embed_dim), nn.Linear(context_dim, embed_dim)
        self.v_proj, self.o_proj = nn.Linear(context_dim, embed_dim), nn.Linear(embed_dim, embed_dim)

    def forward(self, x, context, keep=None):
        if keep is None:
            keep = context.new_ones(context.shape[:-1], dtype=torch.bool)
        H = self.num_heads
        q = self.q_proj(x)[:, :, None].unflatten(-1, (H, -1))  # (B, Tq, 1, H, D)
        k = self.k_proj(context)[:, None].unflatten(-1, (H, -1))  # (B, 1, Tk, H, D)
        v = self.v_proj(context)[:, None].unflatten(-1, (H, -1))
        scores = (q * k).sum(dim=-1, keepdim=True).div(math.sqrt(q.size(-1)))  # (B, Tq, Tk, H, 1)
        scores = torch.where(keep[:, None, :, None, None], scores, -float("inf"))
        weights = (scores - scores.logsumexp(dim=2, keepdim=True)).exp()
        return self.o_proj((weights * v).sum(dim=2).flatten(-2))
