# breaks: parameters
# mistake: none
import torch
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, query_dim, key_dim, hidden_dim):
        super().__init__()
        self.attn = nn.Linear(query_dim + key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, query, keys, values, keep=None):
        Tq, Tk = query.shape[1], keys.shape[1]
        q = query.unsqueeze(2).expand(-1, -1, Tk, -1)
        k = keys.unsqueeze(1).expand(-1, Tq, -1, -1)
        scores = self.score_proj(torch.tanh(self.attn(torch.cat([q, k], -1)))).squeeze(-1)
        if keep is not None:
            scores = scores.masked_fill(~keep.unsqueeze(1), float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return torch.bmm(weights, values)
