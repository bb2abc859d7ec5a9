# style: a loop over the new tokens, each over the keys up to itself: no mask at all
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Cache(NamedTuple):
    k: Tensor
    v: Tensor


class CachedSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.D, rest = divmod(embed_dim, num_heads)
        if rest:
            raise ValueError("embed_dim % num_heads != 0")
        self.H = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def heads(self, layer, x):
        return layer(x).unflatten(-1, (self.H, self.D)).movedim(2, 1)

    def forward(self, x, cache=None):
        q, k, v = (self.heads(layer, x) for layer in (self.q_proj, self.k_proj, self.v_proj))
        if cache is None:
            cache = Cache(k[:, :, :0], v[:, :, :0])
        past = cache.k.shape[2]
        cache = Cache(torch.cat([cache.k, k], 2), torch.cat([cache.v, v], 2))
        outs = []
        for i in range(x.shape[1]):
            keys, values = cache.k[:, :, : past + i + 1], cache.v[:, :, : past + i + 1]
            scores = (keys * q[:, :, i : i + 1]).sum(-1) * self.D**-0.5  # (B, H, past + i + 1)
            outs.append((scores.softmax(-1).unsqueeze(-1) * values).sum(2).flatten(1))
        return self.o_proj(torch.stack(outs, dim=1)), cache
