# style: exp without its maximum, the mask after it, then divided by what is left; scores laid out (B, Tk, Tq)
# edge fails: nothing_to_attend_to, large_scores
import torch
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        weights = torch.exp(self.k_proj(keys) @ query.mT)
        if keep is not None:
            weights = weights * keep[:, :, None]
        weights = weights / weights.sum(1, keepdim=True)
        return weights.mT @ values
