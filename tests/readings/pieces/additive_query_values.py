import torch
from torch import nn


class BahdanauAttention(nn.Module):
    def __init__(self, units):
        super().__init__()
        self.W1 = nn.Linear(units, units)
        self.W2 = nn.Linear(units, units)
        self.V = nn.Linear(units, 1)

    def forward(self, query, values):
        # query (batch, units): the state of the decoder; values (batch, steps, units): the outputs of the encoder
        state = query.unsqueeze(1)
        score = self.V(torch.tanh(self.W1(state) + self.W2(values)))
        attention_weights = torch.softmax(score, dim=1)
        context_vector = (attention_weights * values).sum(dim=1)
        return context_vector, attention_weights
