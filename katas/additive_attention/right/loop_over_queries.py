# style: one query at a time, 0/1 mask and -1e20
# edge fails: nothing_to_attend_to, half_precision
import torch
import torch.nn.functional as F
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, query_dim, key_dim, hidden_dim):
        super().__init__()
        self.q_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.k_proj = nn.Linear(key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, query, keys, values, keep=None):
        projected = self.k_proj(keys)
        contexts = []
        for t in range(query.size(1)):
            step = self.q_proj(query[:, t : t + 1])
            energy = self.score_proj(torch.tanh(step + projected))  # (B, Tk, 1)
            if keep is not None:
                energy = energy.masked_fill(keep.int().unsqueeze(-1) == 0, -1e20)
            alpha = F.softmax(energy, dim=1)
            contexts.append((alpha * values).sum(1))
        return torch.stack(contexts, 1)
