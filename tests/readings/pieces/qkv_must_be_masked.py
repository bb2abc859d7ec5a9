"""A notebook's layer that cannot do without a mask. The weights come back too."""

import torch
from torch import nn


class NotebookAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_k = n_heads, d_model // n_heads
        self.W_Q, self.W_K, self.W_V = (nn.Linear(d_model, d_model) for _ in range(3))
        self.linear = nn.Linear(d_model, d_model)

    def forward(self, Q, K, V, attn_mask):
        """attn_mask (batch, queries, keys): True is hidden."""
        q, k, v = (
            layer(x).view(x.size(0), -1, self.n_heads, self.d_k).transpose(1, 2)
            for layer, x in ((self.W_Q, Q), (self.W_K, K), (self.W_V, V))
        )
        scores = torch.matmul(q, k.transpose(-1, -2)) / self.d_k**0.5
        scores = scores.masked_fill(attn_mask.unsqueeze(1), -1e9)
        attn = nn.Softmax(dim=-1)(scores)
        context = torch.matmul(attn, v).transpose(1, 2).reshape(Q.size(0), -1, self.n_heads * self.d_k)
        return self.linear(context), attn
