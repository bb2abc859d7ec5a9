# style: einsum with split columns, -inf fill, functional dropout
# edge fails: empty_rows
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.h, self.d, self.p = num_heads, embed_dim // num_heads, dropout
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(embed_dim, embed_dim))

    def forward(self, x, mask=None):
        b, t, e = x.shape
        q, k, v = (p(x).reshape(b, t, self.h, self.d) for p in (self.q_proj, self.k_proj, self.v_proj))
        s = torch.einsum("bihd,bjhd->bhij", q, k) * self.d**-0.5
        if mask is not None:
            s = s.masked_fill(mask.logical_not(), -torch.inf)
        a = F.dropout(s.softmax(-1), self.p, self.training)
        return self.o_proj(torch.einsum("bhij,bjhd->bihd", a, v).reshape(b, t, e))
