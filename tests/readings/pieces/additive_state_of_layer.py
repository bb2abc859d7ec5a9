"""Additive attention on the state of a recurrent layer, (1, batch, hidden); the first layer is that of the values."""

import torch
from torch import nn


class StateAttention(nn.Module):
    def __init__(self, units, hidden_size):
        super().__init__()
        self.W1 = nn.Linear(hidden_size, units)
        self.W2 = nn.Linear(hidden_size, units)
        self.V = nn.Linear(units, 1)

    def forward(self, query, values):
        state = torch.squeeze(query, 0).unsqueeze(1)
        weights = torch.softmax(self.V(torch.tanh(self.W1(values) + self.W2(state))), dim=1)
        return (weights * values).sum(1), weights
