# Parameters of the right names and shapes, and others that are used.
# outcome: failed
# fails: from_scratch
# says: calls nn.MultiheadAttention
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError
        for name in "qkvo":
            setattr(self, f"{name}_proj", nn.Linear(embed_dim, embed_dim))
        self.inner = [nn.MultiheadAttention(embed_dim, num_heads, dropout, batch_first=True, dtype=torch.float64)]

    def forward(self, x, mask=None):
        return self.inner[0].to(x.dtype)(x, x, x)[0]
