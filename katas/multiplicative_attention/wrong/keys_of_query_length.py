# breaks: output_shape
# mistake: context.query_length
import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        B, T, E = query.shape
        projected = self.k_proj(keys).reshape(B, T, E)
        values = values.reshape(B, T, values.shape[-1])
        scores = query @ projected.transpose(1, 2)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return weights @ values
