# style: k_up folded into the query, v_up into the output: attention over the latent vectors themselves
import torch
from torch import nn


class LatentAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, head_dim, latent_dim, rope_dim):
        super().__init__()
        if rope_dim % 2 == 1:
            raise ValueError(rope_dim)
        self.H, self.D, self.R = num_heads, head_dim, rope_dim
        make = lambda rows, columns: nn.Linear(rows, columns, bias=False)  # noqa: E731
        self.q_proj, self.o_proj = make(embed_dim, num_heads * (head_dim + rope_dim)), make(num_heads * head_dim, embed_dim)
        self.kv_down, self.k_rope = make(embed_dim, latent_dim), make(embed_dim, rope_dim)
        self.k_up, self.v_up = make(latent_dim, num_heads * head_dim), make(latent_dim, num_heads * head_dim)

    def angles(self, T, x):
        freqs = torch.tensor([10000.0 ** (-2 * i / self.R) for i in range(self.R // 2)], dtype=torch.float64)
        return torch.arange(T, device=x.device)[:, None, None] * freqs.to(x.device)

    def turned(self, part):
        a = self.angles(part.shape[1], part)
        cos, sin = a.cos().to(part.dtype), a.sin().to(part.dtype)
        even, odd = part.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)

    def forward(self, x):
        q = self.q_proj(x).unflatten(-1, (self.H, self.D + self.R))
        latent = self.kv_down(x)
        k_up = self.k_up.weight.view(self.H, self.D, -1)
        v_up = self.v_up.weight.view(self.H, self.D, -1)
        folded = torch.einsum("bihd,hdl->bihl", q[..., : self.D], k_up)
        scores = torch.einsum("bihl,bjl->bhij", folded, latent)
        scores = scores + torch.einsum("bihr,bjr->bhij", self.turned(q[..., self.D :]), self.turned(self.k_rope(x)[:, :, None])[:, :, 0])
        i = torch.arange(x.shape[1], device=x.device)
        scores = (scores * (self.D + self.R) ** -0.5).masked_fill(i > i[:, None], torch.finfo(x.dtype).min)
        mixed = torch.einsum("bhij,bjl->bihl", scores.softmax(-1), latent)
        return self.o_proj(torch.einsum("bihl,hdl->bihd", mixed, v_up).flatten(2))
