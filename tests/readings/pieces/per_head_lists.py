import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    """keep_mask is True for the pairs (query, key) that may be used."""

    def __init__(self, width, heads):
        super().__init__()
        self.head_width = width // heads
        self.q_layers = nn.ModuleList(nn.Linear(width, self.head_width) for _ in range(heads))
        self.k_layers = nn.ModuleList(nn.Linear(width, self.head_width) for _ in range(heads))
        self.v_layers = nn.ModuleList(nn.Linear(width, self.head_width) for _ in range(heads))
        self.merge = nn.Linear(width, width)

    def forward(self, query, key, value, keep_mask=None):
        results = []
        for to_q, to_k, to_v in zip(self.q_layers, self.k_layers, self.v_layers):
            q, k, v = to_q(query), to_k(key), to_v(value)
            scores = q @ k.mT / self.head_width**0.5
            if keep_mask is not None:
                scores = scores.masked_fill(keep_mask.logical_not(), -torch.inf)
            weights = scores.softmax(-1)
            results.append(weights @ v)
        return self.merge(torch.cat(results, dim=-1))
