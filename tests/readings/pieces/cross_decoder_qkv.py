import torch
from torch import Tensor, nn


class MultiHeadCrossAttention(nn.Module):
    def __init__(self, query_size: int, key_size: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(query_size, query_size)
        self.w_k = nn.Linear(key_size, query_size)
        self.w_v = nn.Linear(key_size, query_size)
        self.w_o = nn.Linear(query_size, query_size)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor = None) -> Tensor:
        """key_mask (batch, 1, key length): bool, True = attend."""
        B, T, E = query.shape
        S = key.shape[1]
        H = self.num_heads
        q = self.w_q(query).reshape(B, T, H, E // H).permute(0, 2, 1, 3)
        k = self.w_k(key).reshape(B, S, H, E // H).permute(0, 2, 3, 1)  # (B, H, D, S)
        v = self.w_v(value).reshape(B, S, H, E // H).permute(0, 2, 1, 3)
        scores = q @ k / (E // H) ** 0.5
        if key_mask is not None:
            scores = scores.masked_fill(~key_mask.unsqueeze(1), float("-inf"))
        attention = scores.softmax(dim=-1)
        merged = (attention @ v).permute(0, 2, 1, 3).reshape(B, T, E)
        return self.w_o(merged)
