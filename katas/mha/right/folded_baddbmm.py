# style: batch and heads folded into one dimension, an additive float mask, baddbmm
# edge fails: empty_rows
import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("bad number of heads")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)

    def fold(self, x: Tensor) -> Tensor:
        B, T, E = x.shape
        D = E // self.num_heads
        return x.contiguous().view(B, T, self.num_heads, D).transpose(1, 2).contiguous().view(B * self.num_heads, T, D)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        B, T, E = x.shape
        H, D = self.num_heads, E // self.num_heads
        q, k, v = self.fold(self.q_proj(x)), self.fold(self.k_proj(x)), self.fold(self.v_proj(x))
        bias = torch.zeros(B, H, T, T, dtype=x.dtype, device=x.device)
        if mask is not None:
            bias.masked_fill_(mask == 0, float("-inf"))
        scores = torch.baddbmm(bias.view(B * H, T, T), q, k.transpose(1, 2), alpha=D**-0.5)
        weights = self.dropout(torch.softmax(scores, dim=-1))
        out = torch.bmm(weights, v).view(B, H, T, D).transpose(1, 2).contiguous().view(B, T, E)
        return self.o_proj(out)
