# style: a loop over heads, and rotation matrices; -1e9 in the future
# edge fails: half_precision
import math

import torch
from torch import nn


class LatentAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, head_dim, latent_dim, rope_dim):
        super().__init__()
        if rope_dim // 2 * 2 != rope_dim:
            raise ValueError("rope_dim must be even")
        self.h, self.d, self.r = num_heads, head_dim, rope_dim
        for name, rows, columns in (
            ("q_proj", embed_dim, num_heads * (head_dim + rope_dim)),
            ("kv_down", embed_dim, latent_dim),
            ("k_up", latent_dim, num_heads * head_dim),
            ("v_up", latent_dim, num_heads * head_dim),
            ("k_rope", embed_dim, rope_dim),
            ("o_proj", num_heads * head_dim, embed_dim),
        ):
            setattr(self, name, nn.Linear(rows, columns, bias=False))

    def turn(self, part):
        T = part.shape[1]
        turned = torch.empty_like(part)
        for i in range(self.r // 2):
            a = torch.arange(T, dtype=torch.float64, device=part.device) * 10000 ** (-2 * i / self.r)
            m = torch.stack([a.cos(), -a.sin(), a.sin(), a.cos()], -1).view(T, 2, 2).to(part.dtype)
            turned[..., 2 * i : 2 * i + 2] = (m @ part[..., 2 * i : 2 * i + 2, None])[..., 0]
        return turned

    def forward(self, x):
        T, d, r = x.shape[1], self.d, self.r
        latent, k_r = self.kv_down(x), self.turn(self.k_rope(x))
        q, k, v = self.q_proj(x), self.k_up(latent), self.v_up(latent)
        future = torch.ones(T, T, device=x.device).triu(1) == 1
        heads = []
        for h in range(self.h):
            own = q[:, :, h * (d + r) : (h + 1) * (d + r)]
            whole_q = torch.cat([own[..., :d], self.turn(own[..., d:])], 2)
            whole_k = torch.cat([k[:, :, h * d : (h + 1) * d], k_r], 2)
            scores = torch.bmm(whole_q, whole_k.transpose(1, 2)) / math.sqrt(d + r)
            heads.append(torch.bmm(scores.masked_fill(future, -1e9).softmax(-1), v[:, :, h * d : (h + 1) * d]))
        return self.o_proj(torch.cat(heads, 2))
