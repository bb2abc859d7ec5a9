import torch
from torch import nn


class FusedAttention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.head_size = hidden_size // num_heads
        self.norm_factor = self.head_size**0.5
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states, attention_mask):
        """attention_mask: bool, True where a query must not look."""
        batch, length, _ = hidden_states.shape
        qkv = self.query_key_value(hidden_states)
        qkv = qkv.view(batch, length, self.num_heads, 3 * self.head_size)
        query = qkv[..., : self.head_size].permute(0, 2, 1, 3)
        key = qkv[..., self.head_size : 2 * self.head_size].permute(0, 2, 1, 3)
        value = qkv[..., 2 * self.head_size :].permute(0, 2, 1, 3)

        attn_scores = torch.matmul(query, key.transpose(-1, -2)) / self.norm_factor
        attn_scores = attn_scores.masked_fill(attention_mask, torch.finfo(attn_scores.dtype).min)
        attn_weights = attn_scores.softmax(-1)
        attn_output = torch.matmul(attn_weights, value)
        attn_output = attn_output.permute(0, 2, 1, 3).contiguous().view(batch, length, self.hidden_size)
        return self.dense(attn_output)
