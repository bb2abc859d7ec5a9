# style: layers of the heads in lists of their own as well, under shorter names
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)


class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(Head(input_dim, key_dim, value_dim) for _ in range(num_heads))
        self.queries = nn.ModuleList(head.q_proj for head in self.heads)
        self.keys = nn.ParameterList(head.k_proj.weight for head in self.heads)
        self.scale = key_dim**-0.5

    def forward(self, x):
        results = []
        for head, query, key in zip(self.heads, self.queries, self.keys, strict=True):
            scores = query(x) @ (x @ key.T).mT * self.scale
            results.append(scores.softmax(-1) @ head.v_proj(x))
        return torch.cat(results, dim=-1)
