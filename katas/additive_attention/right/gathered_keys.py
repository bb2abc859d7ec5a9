# style: sample by sample, hidden keys taken out before anything is computed, Chinese comments
import torch
from torch import nn


class AdditiveAttention(nn.Module):
    def __init__(self, query_dim, key_dim, hidden_dim):
        super().__init__()
        self.q_proj = nn.Linear(query_dim, hidden_dim, bias=False)
        self.k_proj = nn.Linear(key_dim, hidden_dim, bias=False)
        self.score_proj = nn.Linear(hidden_dim, 1, bias=False)

    def one(self, query, keys, values):
        if len(keys) == 0:  # 没有可用的键
            return query.new_zeros(len(query), values.shape[-1])
        pairs = self.q_proj(query)[:, None] + self.k_proj(keys)[None]
        return self.score_proj(pairs.tanh()).flatten(1).softmax(1) @ values

    def forward(self, query, keys, values, keep=None):
        out = []
        for b in range(len(query)):
            shown = slice(None) if keep is None else keep[b]
            out.append(self.one(query[b], keys[b][shown], values[b][shown]))  # 只保留真实的键
        return torch.stack(out)
