# breaks: parameters
# mistake: module.rebuilt
import torch
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, query_dim, key_dim, hidden_dim):
        super().__init__()
        self.hidden_dim = hidden_dim

    def forward(self, query, keys, values, keep=None):
        self.score = nn.Linear(self.hidden_dim, 1, bias=False).to(query)
        q = nn.Linear(query.shape[-1], self.hidden_dim, bias=False).to(query)(query).unsqueeze(2)
        k = nn.Linear(keys.shape[-1], self.hidden_dim, bias=False).to(query)(keys).unsqueeze(1)
        scores = self.score(torch.tanh(q + k)).squeeze(-1)
        if keep is not None:
            scores = scores.masked_fill(~keep.unsqueeze(1), float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return torch.bmm(weights, values)
