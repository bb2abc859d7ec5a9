import torch
from torch import nn


class Attention(nn.Module):
    """Computes scaled dot-product attention. Where mask is 0, there is no attention; where it is 1, there is."""

    def forward(self, query, key, value, mask=None, dropout=None):
        scores = query.matmul(key.transpose(-2, -1)).div(query.size(-1) ** 0.5)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        p_attn = scores.softmax(dim=-1)
        if dropout is not None:
            p_attn = dropout(p_attn)
        return p_attn.matmul(value), p_attn
