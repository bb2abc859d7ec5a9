# breaks: float32
# mistake: none
import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = query @ self.k_proj(keys).transpose(1, 2)
        scores = scores.to(values.dtype)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return weights @ values
