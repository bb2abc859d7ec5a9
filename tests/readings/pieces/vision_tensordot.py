"""A vision transformer by tensordot: weights (width, heads, size), each with a bias (heads, size)."""

import torch
from torch import nn


class DenseGeneral(nn.Module):
    def __init__(self, ins, outs):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(*ins, *outs))
        self.bias = nn.Parameter(torch.zeros(*outs))

    def forward(self, x, over):
        return torch.tensordot(x, self.weight, dims=over) + self.bias


class TokenAttention(nn.Module):
    def __init__(self, in_dim, heads=8):
        super().__init__()
        size = in_dim // heads
        self.root = size**0.5
        self.query = DenseGeneral((in_dim,), (heads, size))
        self.key = DenseGeneral((in_dim,), (heads, size))
        self.value = DenseGeneral((in_dim,), (heads, size))
        self.out = DenseGeneral((heads, size), (in_dim,))

    def forward(self, x):
        q, k, v = (part(x, over=([2], [0])).transpose(1, 2) for part in (self.query, self.key, self.value))
        weights = torch.softmax(q @ k.transpose(-2, -1) / self.root, dim=-1)
        return self.out((weights @ v).transpose(1, 2), over=([2, 3], [0, 1]))
