# style: keys in chunks with an online softmax; half-split turn on permuted columns
# edge fails: float64_throughout
import torch
from torch import nn


class LatentAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, head_dim, latent_dim, rope_dim):
        super().__init__()
        if rope_dim % 2 != 0:
            raise ValueError("odd rope_dim")
        self.num_heads, self.head_dim, self.rope_dim = num_heads, head_dim, rope_dim
        self.q_proj = nn.Linear(embed_dim, num_heads * (head_dim + rope_dim), bias=False)
        self.kv_down = nn.Linear(embed_dim, latent_dim, bias=False)
        self.k_up = nn.Linear(latent_dim, num_heads * head_dim, bias=False)
        self.v_up = nn.Linear(latent_dim, num_heads * head_dim, bias=False)
        self.k_rope = nn.Linear(embed_dim, rope_dim, bias=False)
        self.o_proj = nn.Linear(num_heads * head_dim, embed_dim, bias=False)

    def turn(self, x):
        """Pairs as halves: the same permutation in q and k leaves their products as they are."""
        x = torch.cat([x[..., 0::2], x[..., 1::2]], dim=-1)
        half = self.rope_dim // 2
        inv = 1 / (10000 ** (torch.arange(half, device=x.device).float() / half))
        angles = torch.outer(torch.arange(x.shape[-2], device=x.device).float(), inv).repeat(1, 2)
        turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
        return x * angles.cos().to(x.dtype) + turned * angles.sin().to(x.dtype)

    def forward(self, x):
        B, T, _ = x.shape
        split = lambda y: y.view(B, T, self.num_heads, -1).transpose(1, 2)  # noqa: E731
        latent = self.kv_down(x)
        q = split(self.q_proj(x))
        q = torch.cat([q[..., : self.head_dim], self.turn(q[..., self.head_dim :])], dim=-1)
        k_r = self.turn(self.k_rope(x)[:, None]).expand(-1, self.num_heads, -1, -1)
        k, v = torch.cat([split(self.k_up(latent)), k_r], dim=-1), split(self.v_up(latent))
        q = q / q.shape[-1] ** 0.5
        low = torch.finfo(x.dtype).min
        top = torch.full_like(q[..., :1], low)
        total, acc = torch.zeros_like(top), torch.zeros_like(q[..., : self.head_dim])
        place = torch.arange(T, device=x.device)
        for j in range(0, T, 4):
            hidden = place[:, None] < place[j : j + 4]
            s = (q @ k[:, :, j : j + 4].mT).masked_fill(hidden, low)
            new = torch.maximum(top, s.detach().amax(-1, keepdim=True))
            p, fix = (s - new).exp() * ~hidden, (top - new).exp()
            total, acc, top = total * fix + p.sum(-1, keepdim=True), acc * fix + p @ v[:, :, j : j + 4], new
        return self.o_proj((acc / total).transpose(1, 2).flatten(2))
