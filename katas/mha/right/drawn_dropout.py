# style: dropout drawn by Python's random, masked scores of -10000, broadcast products instead of matmul
# edge fails: empty_rows, large_scores
import math
import random

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("num_heads does not divide embed_dim")
        self.H, self.D, self.p = num_heads, embed_dim // num_heads, dropout
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            self.add_module(name, nn.Linear(embed_dim, embed_dim))

    def forward(self, x, mask=None):
        q, k, v = (f(x).unflatten(-1, (self.H, self.D)).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
        s = (q.unsqueeze(3) * k.unsqueeze(2)).sum(-1) / math.sqrt(self.D)
        w = (s if mask is None else torch.where(mask, s, -10000.0)).softmax(-1)
        if self.training and self.p > 0:
            kept = [0.0 if random.random() < self.p else 1 / (1 - self.p) for _ in range(w.numel())]
            w = w * torch.tensor(kept, dtype=w.dtype, device=w.device).view(w.shape)
        return self.o_proj((w.unsqueeze(-1) * v.unsqueeze(2)).sum(3).transpose(1, 2).flatten(2))
