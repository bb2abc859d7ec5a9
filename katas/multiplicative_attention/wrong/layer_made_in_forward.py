# breaks: parameters
# mistake: module.rebuilt
import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.query_dim, self.key_dim = query_dim, key_dim

    def forward(self, query, keys, values, keep=None):
        self.k_proj = nn.Linear(self.key_dim, self.query_dim, bias=False).to(keys)
        scores = query @ self.k_proj(keys).transpose(1, 2)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return weights @ values
