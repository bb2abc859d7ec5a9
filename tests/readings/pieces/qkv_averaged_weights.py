"""A layer that returns its weights averaged over the heads, beside the output."""

from torch import nn


class CrossModalAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, embed_dim // num_heads
        self.to_q = nn.Linear(embed_dim, embed_dim)
        self.to_k = nn.Linear(embed_dim, embed_dim)
        self.to_v = nn.Linear(embed_dim, embed_dim)
        self.to_out = nn.Linear(embed_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)

    def _split(self, x):
        return x.view(x.size(0), x.size(1), self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, query, key, value):
        q, k, v = self._split(self.to_q(query)), self._split(self.to_k(key)), self._split(self.to_v(value))
        attn_weights = (q @ k.transpose(-2, -1) / self.head_dim**0.5).softmax(dim=-1)
        attn_output = (self.dropout(attn_weights) @ v).transpose(1, 2).flatten(2)
        return self.to_out(attn_output), attn_weights.mean(dim=1)
