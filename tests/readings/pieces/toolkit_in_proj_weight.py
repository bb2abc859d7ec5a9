import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttn(nn.Module):
    def __init__(self, dim, heads, dropout=0.0):
        super().__init__()
        if dim % heads:
            raise ValueError("heads must divide dim")
        self.heads, self.head_dim, self.dropout = heads, dim // heads, dropout
        self.in_proj_weight = nn.Parameter(torch.empty(3 * dim, dim))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * dim))
        self.out_proj = nn.Linear(dim, dim)
        nn.init.xavier_uniform_(self.in_proj_weight)

    def forward(self, x, attn_mask=None):
        """x: (T, B, dim); attn_mask is added to the scores, -inf where attention is not allowed."""
        T, B, dim = x.shape
        q, k, v = F.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, dim=-1)
        q = q.reshape(T, B * self.heads, self.head_dim).transpose(0, 1)
        k = k.reshape(T, B * self.heads, self.head_dim).transpose(0, 1)
        v = v.reshape(T, B * self.heads, self.head_dim).transpose(0, 1)
        scores = torch.bmm(q, k.transpose(1, 2)) / self.head_dim**0.5  # (B*heads, T, T)
        if attn_mask is not None:
            scores = scores + attn_mask
        weights = F.softmax(scores, dim=-1)
        weights = F.dropout(weights, self.dropout, self.training)
        out = torch.bmm(weights, v)
        out = out.transpose(0, 1).reshape(T, B, dim)
        return self.out_proj(out)
