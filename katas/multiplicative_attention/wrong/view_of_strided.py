# breaks: non_contiguous_inputs
# mistake: layout.view_of_strided
import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        B, Tk, size = keys.shape
        projected = self.k_proj(keys.view(B * Tk, size)).view(B, Tk, -1)
        scores = query @ projected.transpose(1, 2)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return weights @ values
