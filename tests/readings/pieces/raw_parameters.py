import torch
import torch.nn as nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_head = d_model // num_heads
        self.W_q = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.W_k = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.W_v = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.W_o = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)

    def forward(self, x):
        batch, seq, d_model = x.shape
        q = (x @ self.W_q).view(batch, seq, self.num_heads, self.d_head).transpose(1, 2)
        k = (x @ self.W_k).view(batch, seq, self.num_heads, self.d_head).transpose(1, 2)
        v = (x @ self.W_v).view(batch, seq, self.num_heads, self.d_head).transpose(1, 2)

        scores = q @ k.transpose(-2, -1) / self.d_head**0.5
        future = torch.triu(torch.ones(seq, seq, dtype=torch.bool, device=x.device), diagonal=1)
        scores = scores.masked_fill(future, float("-inf"))
        attn = torch.softmax(scores, dim=-1)

        out = attn @ v
        out = out.transpose(1, 2).reshape(batch, seq, d_model)
        return out @ self.W_o
