import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d, d_q, d_v):
        super().__init__()
        self.W_q = nn.Parameter(torch.rand(d, d_q))
        self.W_k = nn.Parameter(torch.rand(d, d_q))
        self.W_v = nn.Parameter(torch.rand(d, d_v))
        self.d_q = d_q

    def forward(self, x):
        q = x @ self.W_q  # (..., T, d_q)
        k = x @ self.W_k
        v = x @ self.W_v
        scores = torch.matmul(q, k.transpose(-2, -1)) / self.d_q**0.5
        weights = scores.softmax(dim=-1)
        return torch.matmul(weights, v)
