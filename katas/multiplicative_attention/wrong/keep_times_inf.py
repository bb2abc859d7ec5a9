# breaks: values_with_keep
# mistake: mask.zero_times_inf
import math

import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        scores = query @ self.k_proj(keys).transpose(1, 2)
        if keep is not None:
            scores = scores - keep.logical_not()[:, None, :].float() * math.inf
        weights = torch.softmax(scores, dim=-1)
        return weights @ values
