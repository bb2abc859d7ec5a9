# style: content and rotary parts scored apart, the textbook lines
# edge fails: float64_throughout
import math

import torch
from torch import nn


def rotate(x):
    T, R = x.shape[-2], x.shape[-1]
    freqs = 10000.0 ** (-torch.arange(0, R, 2, device=x.device).float() / R)
    angles = torch.arange(T, device=x.device).float()[:, None] * freqs
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    x0, x1 = x[..., 0::2], x[..., 1::2]
    return torch.stack([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1).flatten(-2)


class LatentAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, head_dim, latent_dim, rope_dim):
        super().__init__()
        if rope_dim % 2 != 0:
            raise ValueError(f"rope_dim must be even, not {rope_dim}")
        self.num_heads, self.head_dim, self.rope_dim = num_heads, head_dim, rope_dim
        self.q_proj = nn.Linear(embed_dim, num_heads * (head_dim + rope_dim), bias=False)
        self.kv_down = nn.Linear(embed_dim, latent_dim, bias=False)
        self.k_up = nn.Linear(latent_dim, num_heads * head_dim, bias=False)
        self.v_up = nn.Linear(latent_dim, num_heads * head_dim, bias=False)
        self.k_rope = nn.Linear(embed_dim, rope_dim, bias=False)
        self.o_proj = nn.Linear(num_heads * head_dim, embed_dim, bias=False)

    def forward(self, x):
        B, T, _ = x.shape
        H, D, R = self.num_heads, self.head_dim, self.rope_dim
        q = self.q_proj(x).view(B, T, H, D + R).transpose(1, 2)
        q_c, q_r = q[..., :D], q[..., D:]
        latent = self.kv_down(x)
        k_c = self.k_up(latent).view(B, T, H, D).transpose(1, 2)
        v = self.v_up(latent).view(B, T, H, D).transpose(1, 2)
        k_r = self.k_rope(x).unsqueeze(1)
        q_r = rotate(q_r)
        k_r = rotate(k_r)
        scores = q_c @ k_c.transpose(-2, -1) + q_r @ k_r.transpose(-2, -1)
        scores = scores / math.sqrt(D + R)
        mask = torch.tril(torch.ones(T, T, dtype=torch.bool, device=x.device))
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        out = (weights @ v).transpose(1, 2).reshape(B, T, H * D)
        return self.o_proj(out)
