# breaks: values
# mistake: none
import torch.nn.functional as F
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        scores = query @ self.k_proj(keys).transpose(1, 2)
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, :], float("-inf"))
        weights = F.one_hot(scores.argmax(-1), scores.shape[-1]).to(values.dtype)
        return weights @ values
