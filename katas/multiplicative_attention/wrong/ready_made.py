# breaks: from_scratch
# mistake: none
import torch.nn.functional as F
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        mask = None if keep is None else keep[:, None, :]
        return F.scaled_dot_product_attention(query, self.k_proj(keys), values, attn_mask=mask, scale=1.0)
