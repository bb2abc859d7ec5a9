# style: norms, GELU and dropout by hand; nn.ModuleDict; einsum; the dtype's minimum
import torch
from torch import nn


def norm(x, layer):
    mean = x.mean(dim=-1, keepdim=True)
    var = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) * torch.rsqrt(var + layer.eps) * layer.weight + layer.bias


class TransformerBlock(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_dim, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads > 0:
            raise ValueError(f"{embed_dim=} {num_heads=}")
        self.heads, self.p = num_heads, dropout
        self.attention = nn.ModuleDict({f"{n}_proj": nn.Linear(embed_dim, embed_dim) for n in "qkvo"})
        self.norm1, self.norm2 = nn.LayerNorm(embed_dim), nn.LayerNorm(embed_dim)
        self.mlp_in, self.mlp_out = nn.Linear(embed_dim, mlp_dim), nn.Linear(mlp_dim, embed_dim)

    def drop(self, x):
        if not self.training or self.p == 0:
            return x
        return x * (torch.rand_like(x) >= self.p) / (1 - self.p)

    def attend(self, x):
        q, k, v = (self.attention[f"{n}_proj"](x).unflatten(-1, (self.heads, -1)) for n in "qkv")
        scores = torch.einsum("bihd,bjhd->bhij", q * q.shape[-1] ** -0.5, k)
        i = torch.arange(x.shape[1], device=x.device)
        scores = torch.where(i[:, None] >= i, scores, torch.finfo(scores.dtype).min)
        return self.attention["o_proj"](torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v).flatten(2))

    def forward(self, x):
        x = x + self.drop(self.attend(norm(x, self.norm1)))
        hidden = self.mlp_in(norm(x, self.norm2))
        hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
        return x + self.drop(self.mlp_out(hidden))
