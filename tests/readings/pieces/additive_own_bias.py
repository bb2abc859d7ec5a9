"""Additive attention with one bias inside of the tanh, apart from its layers; one query at a time."""

import torch
from torch import nn


class AdditiveScore(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
        self.for_query = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.for_key = nn.Linear(hidden_dim, hidden_dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden_dim))
        self.score_layer = nn.Linear(hidden_dim, 1)

    def forward(self, query, key, value):
        energy = torch.tanh(self.for_key(key) + self.for_query(query) + self.bias)
        weights = torch.softmax(self.score_layer(energy).squeeze(-1), dim=-1)
        context = torch.bmm(weights.unsqueeze(1), value)
        return context, weights
