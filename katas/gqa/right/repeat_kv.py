# style: as the Llama code of Hugging Face transformers computes it: a new dimension, expanded and reshaped; additive mask
# edge fails: keys_not_copied, empty_rows
import torch
from torch import nn


def repeat_kv(states, times):
    if times == 1:
        return states
    batch, heads, length, size = states.shape
    return states.unsqueeze(2).expand(batch, heads, times, length, size).reshape(batch, heads * times, length, size)


class GroupedQueryAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, num_kv_heads):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("embed_dim must be a multiple of num_heads")
        if num_heads % num_kv_heads:
            raise ValueError("num_heads must be a multiple of num_kv_heads")
        self.head_dim = embed_dim // num_heads
        self.num_key_value_groups = num_heads // num_kv_heads
        self.scaling = self.head_dim**-0.5
        self.q_proj = nn.Linear(embed_dim, num_heads * self.head_dim)
        self.k_proj = nn.Linear(embed_dim, num_kv_heads * self.head_dim)
        self.v_proj = nn.Linear(embed_dim, num_kv_heads * self.head_dim)
        self.o_proj = nn.Linear(num_heads * self.head_dim, embed_dim)

    def forward(self, hidden, mask=None):
        lead = hidden.shape[:-1]
        q, k, v = (
            layer(hidden).view(*lead, -1, self.head_dim).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        k, v = repeat_kv(k, self.num_key_value_groups), repeat_kv(v, self.num_key_value_groups)
        weights = torch.matmul(q, k.transpose(2, 3)) * self.scaling
        if mask is not None:
            weights = weights + torch.zeros_like(mask, dtype=weights.dtype).masked_fill(~mask, torch.finfo(weights.dtype).min)
        weights = nn.functional.softmax(weights, dim=-1, dtype=torch.promote_types(weights.dtype, torch.float32)).to(q.dtype)
        return self.o_proj((weights @ v).transpose(1, 2).contiguous().reshape(*lead, -1))
