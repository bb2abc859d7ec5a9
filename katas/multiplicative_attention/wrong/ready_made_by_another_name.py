# breaks: from_scratch
# mistake: none
import torch
from torch import nn

attend = torch._C._nn.scaled_dot_product_attention


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        query = query * query.shape[-1] ** 0.5
        if keep is None:
            return attend(query, self.k_proj(keys), values)
        return attend(query, self.k_proj(keys), values, keep.unsqueeze(1))
