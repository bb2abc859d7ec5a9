import torch
from torch import nn


class BilinearAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.W = nn.Parameter(torch.randn(query_dim, key_dim))

    def forward(self, query, key, value, ignored=None):
        # ignored (batch, key length): True for keys that get no weight
        scores = torch.einsum("bqd,de,bke->bqk", query, self.W, key)
        if ignored is not None:
            scores = scores.masked_fill(ignored[:, None, :], float("-inf"))
        return torch.einsum("bqk,bke->bqe", scores.softmax(dim=-1), value)
