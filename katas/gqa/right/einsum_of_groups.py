# style: groups stay apart, (B, G, H / G, T, T): einsum copies no key
# edge fails: empty_rows
import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, num_kv_heads):
        super().__init__()
        if embed_dim % num_heads or num_heads % num_kv_heads:
            raise ValueError("heads")
        self.groups, self.each, self.size = num_kv_heads, num_heads // num_kv_heads, embed_dim // num_heads
        self.q_proj, self.o_proj = nn.Linear(embed_dim, embed_dim), nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, self.groups * self.size)
        self.v_proj = nn.Linear(embed_dim, self.groups * self.size)

    def forward(self, x, mask=None):
        B, T, _ = x.shape
        q = self.q_proj(x).reshape(B, T, self.groups, self.each, self.size)
        k = self.k_proj(x).reshape(B, T, self.groups, self.size)
        v = self.v_proj(x).reshape(B, T, self.groups, self.size)
        scores = torch.einsum("bignd,bjgd->bgnij", q, k) / self.size**0.5
        if mask is not None:
            mask = mask.expand(B, self.groups * self.each, T, T).reshape(B, self.groups, self.each, T, T)
            scores = torch.where(mask, scores, float("-inf"))
        out = torch.einsum("bgnij,bjgd->bignd", scores.softmax(-1), v)
        return self.o_proj(out.flatten(2))
