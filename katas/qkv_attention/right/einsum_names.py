# style: einsum with split columns, a mask by torch.where, a namedtuple as the result
# edge fails: empty_rows
from collections import namedtuple

import torch
from torch import nn

Result = namedtuple("Result", "out weights")


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        self.d, rest = divmod(embed_dim, num_heads)
        if rest:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.h = num_heads
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(embed_dim, embed_dim))
        self.drop = nn.Dropout(dropout)

    def forward(self, q, k, v, mask=None):
        q, k, v = (
            layer(x).unflatten(-1, (self.h, self.d))
            for layer, x in ((self.q_proj, q), (self.k_proj, k), (self.v_proj, v))
        )
        s = torch.einsum("bihd,bjhd->bhij", q * self.d**-0.5, k)
        if mask is not None:
            s = torch.where(mask, s, -torch.inf)
        w = s.softmax(-1)
        return Result(self.o_proj(torch.einsum("bhij,bjhd->bihd", self.drop(w), v).flatten(2)), w)
