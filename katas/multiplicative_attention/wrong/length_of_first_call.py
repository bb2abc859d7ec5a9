# breaks: sizes_may_change
# mistake: none
import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.hidden = None
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        scores = query @ self.k_proj(keys).transpose(1, 2)
        if self.hidden is None:  # made once
            self.hidden = torch.zeros(1, 1, keys.shape[1], dtype=torch.bool, device=keys.device)
        scores = scores.masked_fill(self.hidden, float("-inf"))
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return weights @ values
