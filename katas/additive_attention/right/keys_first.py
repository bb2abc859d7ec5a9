# style: scores laid out keys first, folded batch, an additive mask of -1e9
# edge fails: nothing_to_attend_to
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
        Tk = keys.shape[1]
        q = self.q_proj(query.reshape(B * Tq, -1)).reshape(B, 1, Tq, -1)
        k = self.k_proj(keys.reshape(B * Tk, -1)).reshape(B, Tk, 1, -1)
        s = self.score_proj(torch.tanh(q + k).flatten(0, 2)).view(B, Tk, Tq)
        if keep is not None:
            s = s + (~keep)[:, :, None].to(s.dtype) * -1e9
        return torch.einsum("bji,bjd->bid", s.softmax(1), values)
