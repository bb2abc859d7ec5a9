# style: D ** -0.25 on both sides, scores with the keys first, masked_fill_ on them, a base class, finfo.min
# edge fails: nothing_to_attend_to
import torch
from torch import nn


class Projections(nn.Module):
    def __init__(self, **sizes):
        super().__init__()
        for name, (size_in, size_out) in sizes.items():
            setattr(self, f"{name}_proj", nn.Linear(size_in, size_out))


class CrossAttention(Projections):
    def __init__(self, dim, other_dim, heads):
        if dim % heads > 0:
            raise ValueError("heads must divide dim")
        super().__init__(q=(dim, dim), k=(other_dim, dim), v=(other_dim, dim), o=(dim, dim))
        self.register_buffer("root", torch.full((1, heads, 1, 1), (dim // heads) ** -0.25, dtype=torch.float64))

    def forward(self, x, memory, keep=None):
        heads = self.root.shape[1]
        root = self.root.to(x.dtype)
        q, k, v = (
            y.view(*y.shape[:2], heads, y.shape[2] // heads).movedim(2, 1)
            for y in (self.q_proj(x), self.k_proj(memory), self.v_proj(memory))
        )
        scores = (k * root) @ (q * root).mT  # (B, H, Tk, Tq)
        if keep is not None:
            scores.masked_fill_(~keep[:, None, :, None], torch.finfo(x.dtype).min)
        y = scores.softmax(dim=-2).mT @ v
        return self.o_proj(y.movedim(1, 2).reshape(x.shape))
