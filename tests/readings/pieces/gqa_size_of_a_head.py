"""Grouped queries by the size of a head: neither heads nor groups are counted by the constructor."""

import torch
from torch import nn


class GroupedHeads(nn.Module):
    def __init__(self, D, head_dim=64, group_size=4):
        super().__init__()
        self.head_dim, self.group_size = head_dim, group_size
        self.num_query_heads = D // head_dim
        self.num_kv_heads = self.num_query_heads // group_size
        self.wq = nn.Linear(D, D)
        self.wk = nn.Linear(D, self.num_kv_heads * head_dim)
        self.wv = nn.Linear(D, self.num_kv_heads * head_dim)
        self.wo = nn.Linear(D, D)

    def forward(self, x):
        B, S, D = x.shape
        q = self.wq(x).view(B, S, self.num_query_heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(B, S, self.num_kv_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(B, S, self.num_kv_heads, self.head_dim).transpose(1, 2)
        k, v = (part.repeat_interleave(self.group_size, dim=1) for part in (k, v))
        scores = torch.einsum("bnid,bnjd->bnij", q, k) / self.head_dim**0.5
        out = torch.einsum("bnij,bnjd->bnid", scores.softmax(dim=-1), v)
        return self.wo(out.transpose(1, 2).reshape(B, S, D))
