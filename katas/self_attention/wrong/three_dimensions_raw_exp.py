# breaks: any_leading_dimensions, large_scores
# mistake: numerics.no_max
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        e = torch.exp(torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5)
        return torch.bmm(e / e.sum(-1, keepdim=True), v)
