# style: one product for the three layers, batch and heads folded for baddbmm, a comparison of positions
import torch
import torch.nn.functional as F
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(f"cannot split {embed_dim} columns into {num_heads} heads")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, cache=None):
        B, T, E = x.shape
        H, D = self.num_heads, E // self.num_heads
        layers = self.q_proj, self.k_proj, self.v_proj
        qkv = F.linear(x, torch.cat([m.weight for m in layers]), torch.cat([m.bias for m in layers]))
        q, k, v = qkv.view(B, T, 3, H, D).permute(2, 0, 3, 1, 4)
        past = 0 if cache is None else cache[0].size(2)
        if past:
            k, v = (torch.cat(pair, dim=2) for pair in zip(cache, (k, v), strict=True))
        bias = torch.zeros(T, past + T, dtype=x.dtype, device=x.device)
        later = torch.arange(past + T, device=x.device)[None] - past > torch.arange(T, device=x.device)[:, None]
        bias[later] = float("-inf")
        fold = [part.reshape(B * H, -1, D) for part in (q, k, v)]
        scores = torch.baddbmm(bias.expand(B * H, -1, -1), fold[0], fold[1].mT, alpha=D**-0.5)
        out = (scores.softmax(-1) @ fold[2]).view(B, H, T, D).transpose(1, 2).flatten(2)
        return self.o_proj(out), (k, v)
