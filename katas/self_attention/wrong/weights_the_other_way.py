# breaks: parameters
# mistake: none
import torch
import torch.nn as nn


class Weight(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(rows, columns))


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = Weight(input_dim, key_dim)
        self.k_proj = Weight(input_dim, key_dim)
        self.v_proj = Weight(input_dim, value_dim)

    def forward(self, x):
        q, k, v = x @ self.q_proj.weight, x @ self.k_proj.weight, x @ self.v_proj.weight
        return torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1) @ v
