# breaks: non_contiguous_inputs
# mistake: layout.view_of_strided
import torch
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, query_dim, key_dim, hidden_dim):
        super().__init__()
        self.q_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.k_proj = nn.Linear(key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, query, keys, values, keep=None):
        B, Tq, _ = query.shape
        q = self.q_proj(query.view(B * Tq, -1)).view(B, Tq, 1, -1)
        k = self.k_proj(keys.view(B * keys.shape[1], -1)).view(B, 1, keys.shape[1], -1)
        scores = self.score_proj(torch.tanh(q + k)).squeeze(-1)
        if keep is not None:
            scores = scores.masked_fill(~keep.unsqueeze(1), float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return torch.bmm(weights, values)
