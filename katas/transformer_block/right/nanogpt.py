# style: as nanoGPT's block: a registered triangle that grows, split by view, dropout at the end of attention and mlp
import math

import torch
import torch.nn as nn
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, dropout):
        super().__init__()
        if n_embd % n_head:
            raise ValueError("n_embd % n_head")
        self.n_head, self.n_embd = n_head, n_embd
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(n_embd, n_embd) for _ in range(3))
        self.o_proj = nn.Linear(n_embd, n_embd)
        self.resid_dropout = nn.Dropout(dropout)
        self.register_buffer("bias", torch.tril(torch.ones(64, 64)).view(1, 1, 64, 64), persistent=False)

    def forward(self, x):
        B, T, C = x.size()
        if self.bias.size(-1) < T:
            self.bias = torch.tril(torch.ones(T, T, device=x.device)).view(1, 1, T, T)
        q, k, v = (p(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.o_proj(y))


class TransformerBlock(nn.Module):
    def __init__(self, n_embd, n_head, n_inner, dropout=0.0):
        super().__init__()
        self.norm1 = nn.LayerNorm(n_embd)
        self.attention = CausalSelfAttention(n_embd, n_head, dropout)
        self.norm2 = nn.LayerNorm(n_embd)
        self.mlp_in = nn.Linear(n_embd, n_inner)
        self.gelu = nn.GELU()
        self.mlp_out = nn.Linear(n_inner, n_embd)
        self.dropout = nn.Dropout(dropout)

    def mlp(self, x):
        return self.dropout(self.mlp_out(self.gelu(self.mlp_in(x))))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x
