# style: explicit loops over samples and heads on slices of the weights; hidden tokens are left out instead of masked
import torch
from torch import nn


def attend(q, k, v):
    return torch.softmax(q @ k.T / q.shape[1] ** 0.5, dim=1) @ v


class CrossAttention(nn.Module):
    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        if embed_dim // num_heads * num_heads != embed_dim:
            raise ValueError("heads of unequal size")
        self.num_heads = num_heads
        self.q_proj, self.o_proj = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)
        self.k_proj, self.v_proj = nn.Linear(context_dim, embed_dim), nn.Linear(context_dim, embed_dim)

    def forward(self, x, context, keep=None):
        samples = []
        for b in range(x.size(0)):
            seen = context[b] if keep is None else context[b, keep[b]]  # (kept, context_dim)
            q, k, v = self.q_proj(x[b]), self.k_proj(seen), self.v_proj(seen)
            parts = [part.chunk(self.num_heads, dim=1) for part in (q, k, v)]
            samples.append(torch.cat([attend(*head) for head in zip(*parts)], dim=1))
        return self.o_proj(torch.stack(samples))
