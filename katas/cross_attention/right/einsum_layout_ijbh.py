# style: einsum, scores laid out (i, j, b, h), -1e9, the weights' softmax over dim 1
# edge fails: nothing_to_attend_to, half_precision
import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, embed_dim: int, context_dim: int, num_heads: int):
        super().__init__()
        head_dim, rest = divmod(embed_dim, num_heads)
        if rest != 0:
            raise ValueError(f"{embed_dim} % {num_heads} = {rest}")
        self.split = (num_heads, head_dim)
        for name, size in zip("qkvo", (embed_dim, context_dim, context_dim, embed_dim)):
            self.add_module(f"{name}_proj", nn.Linear(size, embed_dim))

    def forward(self, x, context, keep=None):
        q = self.q_proj(x).unflatten(2, self.split)
        k = self.k_proj(context).unflatten(2, self.split)
        v = self.v_proj(context).unflatten(2, self.split)
        scores = torch.einsum("bihd,bjhd->ijbh", q, k) * self.split[1] ** -0.5
        if keep is not None:
            scores = scores.masked_fill(keep.t()[None, :, :, None].logical_not(), -1e9)
        mixed = torch.einsum("ijbh,bjhd->bihd", scores.softmax(1), v)
        return self.o_proj(mixed.flatten(2))
