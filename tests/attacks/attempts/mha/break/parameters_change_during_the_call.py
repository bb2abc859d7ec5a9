# Parameters come and go during a call.
# outcome: failed
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError
        for name in "qkvo":
            setattr(self, f"{name}_proj", nn.Linear(embed_dim, embed_dim))

    def forward(self, x, mask=None):
        self.register_parameter(f"extra{len(list(self.parameters()))}", nn.Parameter(torch.zeros(1)))
        return self.o_proj(self.v_proj(x))
