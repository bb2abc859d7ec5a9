"""A toolkit's layer: caches of an earlier call are optional, and only the weights of the first head come back."""

import math

import torch
from torch import nn


class CachingAttention(nn.Module):
    def __init__(self, model_dim, head_count):
        super().__init__()
        self.head_count, self.dim_per_head = head_count, model_dim // head_count
        self.linear_keys = nn.Linear(model_dim, model_dim)
        self.linear_values = nn.Linear(model_dim, model_dim)
        self.linear_query = nn.Linear(model_dim, model_dim)
        self.final_linear = nn.Linear(model_dim, model_dim)

    def _heads(self, x):
        return x.view(x.size(0), -1, self.head_count, self.dim_per_head).transpose(1, 2)

    def forward(self, key, value, query, enc_cache=None):
        if enc_cache is not None:
            k, v = enc_cache
        else:
            k, v = self._heads(self.linear_keys(key)), self._heads(self.linear_values(value))
        q = self._heads(self.linear_query(query)) / math.sqrt(self.dim_per_head)
        attn = torch.softmax(q @ k.transpose(2, 3), dim=-1)
        output = self.final_linear((attn @ v).transpose(1, 2).flatten(2))
        return output, attn[:, 0], [k, v]
