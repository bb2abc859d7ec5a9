"""A library's layer: query, key, value and a key_padding_mask in which True hides; need_weights asks for the weights."""

import math

import torch
from torch import nn


class AttentionLayer(nn.Module):
    def __init__(self, hidden_size, num_attention_heads, attention_dropout=0.0):
        super().__init__()
        self.heads = num_attention_heads
        self.query_proj = nn.Linear(hidden_size, hidden_size)
        self.key_proj = nn.Linear(hidden_size, hidden_size)
        self.value_proj = nn.Linear(hidden_size, hidden_size)
        self.output_proj = nn.Linear(hidden_size, hidden_size)
        self.attention_dropout = nn.Dropout(attention_dropout)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=False):
        """key_padding_mask: (batch, keys), True for padding, which is ignored."""
        batch, length, width = query.shape
        q = self.query_proj(query).view(batch, length, self.heads, -1).transpose(1, 2)
        k = self.key_proj(key).view(batch, key.shape[1], self.heads, -1).transpose(1, 2)
        v = self.value_proj(value).view(batch, value.shape[1], self.heads, -1).transpose(1, 2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None, :], float("-inf"))
        attn_weights = torch.softmax(scores, dim=-1)
        context = self.attention_dropout(attn_weights) @ v
        output = self.output_proj(context.transpose(1, 2).reshape(batch, length, width))
        if need_weights:
            return output, attn_weights
        return output
