import torch
from torch import nn


class PerceiverCrossAttention(nn.Module):
    def __init__(self, num_heads: int, num_q_input_channels: int, num_kv_input_channels: int, dropout: float = 0.0):
        super().__init__()
        if num_q_input_channels % num_heads != 0:
            raise ValueError("num_q_input_channels must be divisible by num_heads")
        self.num_heads = num_heads
        self.dp_scale = (num_q_input_channels // num_heads) ** -0.5
        self.q_proj = nn.Linear(num_q_input_channels, num_q_input_channels)
        self.k_proj = nn.Linear(num_kv_input_channels, num_q_input_channels)
        self.v_proj = nn.Linear(num_kv_input_channels, num_q_input_channels)
        self.o_proj = nn.Linear(num_q_input_channels, num_q_input_channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_q, x_kv, pad_mask=None):
        """
        :param x_q: (B, N, D) where N is the length of the queries
        :param x_kv: (B, L, C) where L is the length of keys and values
        :param pad_mask: bool (B, L), True = a padding token that is left out
        """
        q, k, v = self.q_proj(x_q), self.k_proj(x_kv), self.v_proj(x_kv)
        q, k, v = (t.reshape(*t.shape[:2], self.num_heads, -1).permute(0, 2, 1, 3) for t in (q, k, v))
        q = q * self.dp_scale
        attn = torch.einsum("bhic,bhjc->bhij", q, k)
        if pad_mask is not None:
            attn = attn.masked_fill(pad_mask[:, None, None, :], -torch.finfo(attn.dtype).max)
        attn = attn.softmax(dim=-1)
        attn = self.dropout(attn)
        o = torch.einsum("bhij,bhjc->bhic", attn, v)
        o = o.permute(0, 2, 1, 3).flatten(2)
        return self.o_proj(o)
