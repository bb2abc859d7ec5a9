"""Attention over query, key and value that returns its output alone: in_proj_weight for all three, an additive mask."""

import torch
import torch.nn.functional as F
from torch import nn


class QKVAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.head_dim = embed_dim // num_heads
        self.in_proj_weight = nn.Parameter(torch.randn(3 * embed_dim, embed_dim) * embed_dim**-0.5)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * embed_dim))
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, query, key, value, attn_bias=None):
        """attn_bias is added to the scores: 0 for open keys, -inf for hidden ones."""
        w_q, w_k, w_v = self.in_proj_weight.chunk(3)
        b_q, b_k, b_v = self.in_proj_bias.chunk(3)
        q, k, v = F.linear(query, w_q, b_q), F.linear(key, w_k, b_k), F.linear(value, w_v, b_v)
        q, k, v = (t.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2) for t in (q, k, v))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * self.head_dim**-0.5
        if attn_bias is not None:
            scores = scores + attn_bias
        weights = F.dropout(scores.softmax(dim=-1), self.dropout, self.training)
        out = torch.einsum("bhqk,bhkd->bhqd", weights, v)
        return self.out_proj(out.transpose(1, 2).flatten(2))
