# style: keys in chunks with an online softmax; dropout on the numerator only
# edge fails: empty_rows
import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    CHUNK = 3

    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(f"{embed_dim=} {num_heads=}")
        self.H = num_heads
        self.dropout = dropout
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def heads(self, y):
        return y.unflatten(-1, (self.H, y.shape[-1] // self.H)).transpose(-3, -2)

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q = self.heads(self.q_proj(x)) * (E // self.H) ** -0.5
        k, v = self.heads(self.k_proj(x)), self.heads(self.v_proj(x))
        if mask is not None:
            mask = mask.expand(B, self.H, T, T)
        low = torch.finfo(x.dtype).min
        top = torch.full_like(q[..., :1], low)
        total, acc = torch.zeros_like(top), torch.zeros_like(q)
        for j in range(0, T, self.CHUNK):
            s = q @ k[..., j : j + self.CHUNK, :].mT
            if mask is not None:
                s = s.masked_fill(~mask[..., j : j + self.CHUNK], low)
            new = torch.maximum(top, s.detach().amax(-1, keepdim=True))
            p, fix = (s - new).exp(), (top - new).exp()
            total = total * fix + p.sum(-1, keepdim=True)
            acc = acc * fix + F.dropout(p, self.dropout, training=self.training) @ v[..., j : j + self.CHUNK, :]
            top = new
        return self.o_proj((acc / total).transpose(1, 2).reshape(B, T, E))
