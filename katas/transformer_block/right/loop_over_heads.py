# style: a loop over heads on column slices, folded bmm; -1e9 in the future; torch.distributions for the GELU
# edge fails: half_precision
import math

import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, width):
        super().__init__()
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            self.add_module(name, nn.Linear(width, width))


class TransformerBlock(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_dim, dropout=0.0):
        super().__init__()
        self.size, rest = divmod(embed_dim, num_heads)
        if rest != 0:
            raise ValueError("the heads do not divide the width")
        self.num_heads = num_heads
        self.attention = Heads(embed_dim)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.norm2 = nn.LayerNorm(embed_dim)
        self.mlp_in = nn.Linear(embed_dim, mlp_dim)
        self.mlp_out = nn.Linear(mlp_dim, embed_dim)
        self.drop1, self.drop2 = nn.Dropout(p=dropout), nn.Dropout(p=dropout)

    def attend(self, x):
        T = x.shape[1]
        q, k, v = self.attention.q_proj(x), self.attention.k_proj(x), self.attention.v_proj(x)
        future = torch.ones(T, T, device=x.device).triu(diagonal=1).bool()
        out = []
        for h in range(self.num_heads):
            own = slice(h * self.size, (h + 1) * self.size)
            scores = torch.bmm(q[..., own], k[..., own].transpose(1, 2)) / math.sqrt(self.size)
            out.append(torch.bmm(scores.masked_fill(future, -1e9).softmax(2), v[..., own]))
        return self.attention.o_proj(torch.cat(out, dim=2))

    def forward(self, x):
        attended = self.attend(self.norm1(x))
        middle = self.drop1(attended) + x
        hidden = self.mlp_in(self.norm2(middle))
        hidden = hidden * torch.special.ndtr(hidden)
        return self.drop2(self.mlp_out(hidden)) + middle
