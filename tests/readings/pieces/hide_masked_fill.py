import torch
from torch import nn


class MHA(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        super().__init__()
        if dim % n_heads != 0:
            raise ValueError("dim % n_heads must be 0")
        self.h, self.dk = n_heads, dim // n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, hidden=None):
        # hidden: True where attention is not allowed
        b, t, c = x.shape
        q = self.wq(x).view(b, t, self.h, self.dk).permute(0, 2, 1, 3)
        k = self.wk(x).view(b, t, self.h, self.dk).permute(0, 2, 1, 3)
        v = self.wv(x).view(b, t, self.h, self.dk).permute(0, 2, 1, 3)
        s = torch.einsum("bhqd,bhkd->bhqk", q, k) / self.dk**0.5
        if hidden is not None:
            s = s.masked_fill(hidden, float("-inf"))
        a = self.dropout(s.softmax(-1))
        y = torch.einsum("bhqk,bhkd->bqhd", a, v).reshape(b, t, c)
        return self.wo(y)
