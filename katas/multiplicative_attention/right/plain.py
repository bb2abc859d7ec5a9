# style: the textbook lines, one after the other
# edge fails: nothing_to_attend_to
import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        scores = query @ self.k_proj(keys).transpose(1, 2)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return weights @ values
