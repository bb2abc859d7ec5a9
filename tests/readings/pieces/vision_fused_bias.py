import torch
from torch import Tensor, nn


class MultiHeadSelfAttention(nn.Module):
    """Attention between the patches of an image."""

    def __init__(self, embed_dim: int = 192, n_heads: int = 3, dropout: float = 0.0):
        super().__init__()
        assert embed_dim % n_heads == 0, "the width must be a multiple of the heads"
        self.n_heads = n_heads
        self.head_dim = embed_dim // n_heads
        self.scale = self.head_dim**-0.5
        self.to_qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.drop = nn.Dropout(dropout)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        qkv = self.to_qkv(x).view(b, n, 3, self.n_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        q = q * self.scale
        weights = torch.softmax(q @ k.transpose(-1, -2), dim=-1)
        weights = self.drop(weights)
        out = weights @ v
        out = out.permute(0, 2, 1, 3).reshape(b, n, d)
        return self.proj(out)
