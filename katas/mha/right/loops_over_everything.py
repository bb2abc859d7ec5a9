# style: loops over samples, heads and queries; only the keys that a query may attend to are ever scored
import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("num_heads does not divide embed_dim")
        self.num_heads, self.dropout = num_heads, dropout
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None):
        B, T, E = x.shape
        D = E // self.num_heads
        if mask is not None:
            mask = torch.broadcast_to(mask, (B, self.num_heads, T, T))
        result = torch.empty_like(x)
        for b in range(B):
            q, k, v = self.q_proj(x[b]), self.k_proj(x[b]), self.v_proj(x[b])
            for h in range(self.num_heads):
                own = range(h * D, (h + 1) * D)
                for i in range(T):
                    keys, values = k[:, own], v[:, own]
                    if mask is not None:
                        keys, values = keys[mask[b, h, i]], values[mask[b, h, i]]
                    w = (keys @ q[i, own] * D**-0.5).softmax(0)
                    w = F.dropout(w, self.dropout, self.training)
                    result[b, i, own] = (w[:, None] * values).sum(0)
        return self.o_proj(result)
