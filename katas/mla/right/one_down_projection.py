# style: kv_down and k_rope in one product, k_up and v_up in one; rotate_every_two; exp by hand
# edge fails: large_scores
import torch
import torch.nn.functional as F
from torch import nn


def every_two(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


class LatentAttention(nn.Module):
    def __init__(self, e, h, d, latent, r):
        super().__init__()
        if r & 1:
            raise ValueError(f"{r} is odd")
        self.h, self.d, self.latent, self.r = h, d, latent, r
        self.q_proj = nn.Linear(e, h * (d + r), bias=False)
        self.kv_down, self.k_rope = nn.Linear(e, latent, bias=False), nn.Linear(e, r, bias=False)
        self.k_up, self.v_up = nn.Linear(latent, h * d, bias=False), nn.Linear(latent, h * d, bias=False)
        self.o_proj = nn.Linear(h * d, e, bias=False)

    def forward(self, x):
        B, T, _ = x.shape
        down = F.linear(x, torch.cat([self.kv_down.weight, self.k_rope.weight]))
        latent, k_r = down.split([self.latent, self.r], -1)
        k, v = F.linear(latent, torch.cat([self.k_up.weight, self.v_up.weight])).view(B, T, 2, self.h, self.d).unbind(2)
        q, q_r = self.q_proj(x).view(B, T, self.h, -1).split([self.d, self.r], -1)
        a = torch.arange(T, device=x.device).double()[:, None] / 10000 ** (torch.arange(0, self.r, 2, device=x.device).double() / self.r)
        a = a.repeat_interleave(2, -1)
        cos, sin = a.cos().to(x.dtype), a.sin().to(x.dtype)
        k_r = k_r * cos + every_two(k_r) * sin
        q_r = q_r * cos[:, None] + every_two(q_r) * sin[:, None]
        s = torch.einsum("bihd,bjhd->bhij", q, k) + torch.einsum("bihr,bjr->bhij", q_r, k_r)
        w = (s * (self.d + self.r) ** -0.5).exp().tril()
        return self.o_proj(torch.einsum("bhij,bjhd->bihd", w / w.sum(-1, keepdim=True), v).reshape(B, T, -1))
