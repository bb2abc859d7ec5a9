# breaks: values
# mistake: none
from torch import nn


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim, key_dim):
        super().__init__()
        self.k_proj = nn.Linear(key_dim, query_dim, bias=False)

    def forward(self, query, keys, values, keep=None):
        if keep is None:
            return values.mean(1, keepdim=True).expand(-1, query.shape[1], -1).contiguous()
        kept = keep[:, :, None].to(values.dtype)
        return ((values * kept).sum(1) / kept.sum(1))[:, None].repeat(1, query.shape[1], 1)
