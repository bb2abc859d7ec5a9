# breaks: values_with_keep, kept_keys_matter
# mistake: mask.right_padding_only
import torch
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, query_dim, key_dim, hidden_dim):
        super().__init__()
        self.q_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.k_proj = nn.Linear(key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, query, keys, values, keep=None):
        q = self.q_proj(query).unsqueeze(2)
        k = self.k_proj(keys).unsqueeze(1)
        scores = self.score_proj(torch.tanh(q + k)).squeeze(-1)
        if keep is not None:
            lengths = keep.sum(1)
            real = torch.arange(keys.shape[1], device=keys.device) < lengths[:, None]
            scores = scores.masked_fill(~real.unsqueeze(1), float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return torch.bmm(weights, values)
