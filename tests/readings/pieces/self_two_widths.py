"""One head that is handed queries, keys and values, with a width of its own beside the model's."""

import torch
from torch import nn


class ProjectedAttention(nn.Module):
    def __init__(self, model_dim: int, embedding_dim: int, dropout_rate: float = 0.0) -> None:
        super().__init__()
        self.queries_of = nn.Linear(in_features=model_dim, out_features=embedding_dim)
        self.keys_of = nn.Linear(in_features=model_dim, out_features=embedding_dim)
        self.values_of = nn.Linear(in_features=model_dim, out_features=embedding_dim)
        self.dropout = nn.Dropout(dropout_rate)
        self.root = embedding_dim**0.5

    def forward(self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        q, k, v = self.queries_of(queries), self.keys_of(keys), self.values_of(values)
        weights = torch.softmax(q @ k.transpose(-2, -1) / self.root, dim=-1)
        return self.dropout(weights) @ v
