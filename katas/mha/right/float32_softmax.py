# style: a model file's habits: float32 softmax cast back, the dtype's minimum added, dataclass settings, layers in a dict
# edge fails: empty_rows, float64_throughout
import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    hidden_size: int
    num_attention_heads: int
    attention_dropout: float


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if (embed_dim // num_heads) * num_heads != embed_dim:
            raise ValueError(f"hidden_size must be divisible by num_heads (got {embed_dim} and {num_heads}).")
        self.config = Config(embed_dim, num_heads, dropout)
        self.head_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=True)
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=True)
        self.v_proj = nn.Linear(embed_dim, embed_dim, bias=True)
        self.o_proj = nn.Linear(embed_dim, embed_dim, bias=True)

    def _shape(self, tensor, seq_len, bsz):
        heads = self.config.num_attention_heads
        return tensor.view(bsz, seq_len, heads, self.head_dim).transpose(1, 2).contiguous()

    def forward(self, hidden_states, attention_mask=None):
        bsz, q_len, _ = hidden_states.size()
        query_states = self._shape(self.q_proj(hidden_states), q_len, bsz)
        key_states = self._shape(self.k_proj(hidden_states), q_len, bsz)
        value_states = self._shape(self.v_proj(hidden_states), q_len, bsz)
        attn_weights = torch.matmul(query_states, key_states.transpose(2, 3)) / math.sqrt(self.head_dim)
        if attention_mask is not None:
            lowest = torch.finfo(attn_weights.dtype).min
            attn_weights = attn_weights + (~attention_mask).to(attn_weights.dtype) * lowest
            attn_weights = attn_weights.clamp(min=lowest)
        attn_weights = nn.functional.softmax(attn_weights, dim=-1, dtype=torch.float32).to(query_states.dtype)
        attn_weights = nn.functional.dropout(attn_weights, p=self.config.attention_dropout, training=self.training)
        attn_output = torch.matmul(attn_weights, value_states)
        return self.o_proj(attn_output.transpose(1, 2).contiguous().reshape(bsz, q_len, self.config.hidden_size))


if __name__ == "__main__":
    print(MultiHeadAttention(12, 3)(torch.randn(2, 5, 12)).shape)
