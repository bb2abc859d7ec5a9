# breaks: values, every_key_matters
# mistake: mask.causal
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
        Tq, Tk = scores.shape[1:]
        scores = scores.masked_fill(torch.ones(Tq, Tk, dtype=torch.bool, device=scores.device).triu(1), -1e9)
        weights = torch.softmax(scores, dim=-1)
        return weights @ values
