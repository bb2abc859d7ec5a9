# style: the matrix applied to the query instead, which is the same product the other way round; -1e9
# edge fails: nothing_to_attend_to
import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        asked = query @ self.k_proj.weight  # (B, Tq, key_dim)
        scores = torch.einsum("bqd,bkd->bqk", asked, keys)
        if keep is not None:
            scores = scores + (~keep[:, None, :]).to(scores.dtype) * -1e9
        return torch.einsum("bqk,bkv->bqv", scores.softmax(-1), values)
