# style: one class for a head, a ModuleList, cat, as most books have it
import torch
import torch.nn as nn


class SelfAttention(nn.Module):
    def __init__(self, d_in, d_k, d_v):
        super().__init__()
        self.q_proj = nn.Linear(d_in, d_k, bias=False)
        self.k_proj = nn.Linear(d_in, d_k, bias=False)
        self.v_proj = nn.Linear(d_in, d_v, bias=False)

    def forward(self, x):
        keys, queries, values = self.k_proj(x), self.q_proj(x), self.v_proj(x)
        attn_scores = queries @ keys.transpose(-1, -2)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        return attn_weights @ values


class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, d_in, d_k, d_v, num_heads):
        super().__init__()
        self.heads = nn.ModuleList([SelfAttention(d_in, d_k, d_v) for _ in range(num_heads)])

    def forward(self, x):
        return torch.cat([h(x) for h in self.heads], dim=-1)
