from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class AttentionConfig:
    d_model: int
    num_heads: int
    dropout: float = 0.0
    causal: bool = False

    @property
    def head_dim(self):
        return self.d_model // self.num_heads


class MultiHeadAttention(nn.Module):
    def __init__(self, config: AttentionConfig):
        super().__init__()
        self.config = config
        self.proj_q = nn.Linear(config.d_model, config.d_model)
        self.proj_k = nn.Linear(config.d_model, config.d_model)
        self.proj_v = nn.Linear(config.d_model, config.d_model)
        self.proj_o = nn.Linear(config.d_model, config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x, padding_mask=None):
        # padding_mask (batch, time): True at padding
        b, t, e = x.shape
        shape = (b, t, self.config.num_heads, self.config.head_dim)
        q = self.proj_q(x).view(shape).transpose(1, 2)
        k = self.proj_k(x).view(shape).transpose(1, 2)
        v = self.proj_v(x).view(shape).transpose(1, 2)

        scores = q @ k.transpose(-2, -1) * self.config.head_dim**-0.5
        if self.config.causal:
            later = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        if padding_mask is not None:
            scores = scores.masked_fill(padding_mask[:, None, None, :], float("-inf"))
        weights = self.dropout(scores.softmax(dim=-1))
        out = (weights @ v).transpose(1, 2).reshape(b, t, e)
        return self.proj_o(out)
