import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, context_dim, *, dim_head=64, heads=8):
        super().__init__()
        self.heads = heads
        self.scale = dim_head**-0.5
        inner = dim_head * heads
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(context_dim, inner * 2, bias=False)
        self.to_out = nn.Linear(inner, dim, bias=False)

    def forward(self, x, context, context_mask=None):
        # context_mask is True where there is a token of the context, and False at padding
        b, n, h = x.shape[0], x.shape[1], self.heads
        q = self.to_q(x)
        k, v = self.to_kv(context).chunk(2, dim=-1)
        q, k, v = [t.view(b, -1, h, t.shape[-1] // h).transpose(1, 2) for t in (q, k, v)]
        sim = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        if context_mask is not None:
            sim = sim.masked_fill(~context_mask[:, None, None, :], -torch.finfo(sim.dtype).max)
        attn = sim.softmax(dim=-1)
        out = torch.einsum("bhij,bhjd->bhid", attn, v)
        out = out.transpose(1, 2).reshape(b, n, -1)
        return self.to_out(out)
