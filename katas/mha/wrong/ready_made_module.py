# breaks: parameters
# mistake: none
from torch import nn


class MultiHeadAttention(nn.MultiheadAttention):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        if embed_dim % num_heads != 0:
            raise ValueError("num_heads does not divide embed_dim")
        super().__init__(embed_dim, num_heads, dropout, batch_first=True)

    def forward(self, x, mask=None):
        return super().forward(x, x, x, attn_mask=None if mask is None else ~mask)[0]
