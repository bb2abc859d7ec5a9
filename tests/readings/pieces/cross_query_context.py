import math

import torch
from torch import nn


class CrossAttentionBlock(nn.Module):
    """Tokens of `query` gather information from tokens of `context`."""

    def __init__(self, d_query, d_context, n_heads):
        super().__init__()
        if d_query % n_heads:
            raise ValueError(f"n_heads {n_heads} must divide d_query {d_query}")
        self.n_heads = n_heads
        self.d_head = d_query // n_heads
        self.query_proj = nn.Linear(d_query, d_query)
        self.key_proj = nn.Linear(d_context, d_query)
        self.value_proj = nn.Linear(d_context, d_query)
        self.output_proj = nn.Linear(d_query, d_query)

    def forward(self, query, context, context_padding=None):
        """context_padding (batch, context length): True for padding, which gets no weight."""
        batch, q_len, width = query.shape
        c_len = context.size(1)
        q = self.query_proj(query).view(batch, q_len, self.n_heads, self.d_head).transpose(1, 2)
        k = self.key_proj(context).view(batch, c_len, self.n_heads, self.d_head).transpose(1, 2)
        v = self.value_proj(context).view(batch, c_len, self.n_heads, self.d_head).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_head)
        if context_padding is not None:
            scores = scores.masked_fill(context_padding[:, None, None, :], float("-inf"))
        weights = scores.softmax(dim=-1)
        out = torch.matmul(weights, v)
        out = out.transpose(1, 2).contiguous().view(batch, q_len, width)
        return self.output_proj(out)
