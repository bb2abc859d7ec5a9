# breaks: values, every_token_counts
# mistake: mask.causal
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        q, k = self.q_proj(x), self.k_proj(x)
        s = q @ k.mT / q.shape[-1] ** 0.5
        s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), float("-inf"))
        return s.softmax(-1) @ self.v_proj(x)
