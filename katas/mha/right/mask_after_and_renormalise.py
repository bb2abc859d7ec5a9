# style: exp by hand, multiplied by the mask, then normalised; dropout by a drawn mask of its own
# edge fails: empty_rows, large_scores
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if not embed_dim % num_heads == 0:
            raise ValueError
        self.num_heads = num_heads
        self.p = dropout
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None):
        q, k, v = [
            f(x).unflatten(2, (self.num_heads, -1)).permute(0, 2, 1, 3) for f in (self.q_proj, self.k_proj, self.v_proj)
        ]
        s = q @ k.mT / q.shape[-1] ** 0.5
        e = torch.exp(s - s.amax(dim=-1, keepdim=True))
        if mask is not None:
            e = e * mask
        w = e / e.sum(-1, keepdim=True)
        if self.training and self.p > 0:
            w = w * (torch.rand_like(w) >= self.p) / (1 - self.p)
        return self.o_proj((w @ v).permute(0, 2, 1, 3).flatten(-2))
