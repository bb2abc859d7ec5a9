# breaks: values, weights_sum_to_one
# mistake: mask.after_softmax + scale.unwanted
import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        scores = query @ self.k_proj(keys).transpose(1, 2) / query.shape[-1] ** 0.5
        weights = torch.softmax(scores, dim=-1)
        if keep is not None:
            weights = weights * keep[:, None, :]
        return weights @ values
