# style: loops over samples and queries; hidden keys are left out
import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def score(self, q, keys):
        return torch.mv(self.k_proj(keys), q)

    def forward(self, query, keys, values, keep=None):
        out = []
        for b in range(query.shape[0]):
            k, v = keys[b], values[b]
            if keep is not None:
                k, v = k[keep[b]], v[keep[b]]
            for q in query[b].unbind(0):
                out.append(torch.softmax(self.score(q, k), dim=0) @ v)
        return torch.stack(out).reshape(*query.shape[:2], values.shape[-1])
