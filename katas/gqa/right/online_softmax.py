# style: queries of a group folded into rows, keys in chunks with an online softmax
# edge fails: empty_rows
import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, num_kv_heads):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(embed_dim, num_heads)
        if num_heads % num_kv_heads != 0:
            raise ValueError(num_heads, num_kv_heads)
        self.H, self.G, self.D = num_heads, num_kv_heads, embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, self.G * self.D)
        self.v_proj = nn.Linear(embed_dim, self.G * self.D)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None):
        B, T, E = x.shape
        q = self.q_proj(x).view(B, T, self.H, self.D).transpose(1, 2).reshape(B, self.G, -1, self.D)
        q = q * self.D**-0.5
        k = self.k_proj(x).view(B, T, self.G, self.D).transpose(1, 2)
        v = self.v_proj(x).view(B, T, self.G, self.D).transpose(1, 2)
        if mask is not None:
            mask = mask.expand(B, self.H, T, T).reshape(B, self.G, -1, T)
        low = torch.finfo(x.dtype).min
        top = torch.full_like(q[..., :1], low)
        total, acc = torch.zeros_like(top), torch.zeros_like(q)
        for j in range(0, T, 2):
            s = q @ k[:, :, j : j + 2].mT
            if mask is not None:
                s = s.masked_fill(~mask[..., j : j + 2], low)
            new = torch.maximum(top, s.detach().amax(-1, keepdim=True))
            p, fix = (s - new).exp(), (top - new).exp()
            total, acc, top = total * fix + p.sum(-1, keepdim=True), acc * fix + p @ v[:, :, j : j + 2], new
        out = (acc / total).reshape(B, self.H, T, self.D)
        return self.o_proj(out.transpose(1, 2).reshape(B, T, E))
