# style: keys in chunks with an online softmax; residual branches through a helper; F.dropout with the mode
import torch
import torch.nn.functional as F
from torch import nn


class Projections(nn.Module):
    def __init__(self, e):
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(e, e), nn.Linear(e, e)
        self.v_proj, self.o_proj = nn.Linear(e, e), nn.Linear(e, e)


class TransformerBlock(nn.Module):
    CHUNK = 4

    def __init__(self, e, h, m, dropout=0.0):
        super().__init__()
        if e % h != 0:
            raise ValueError(e, h)
        self.h, self.p = h, dropout
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(e), Projections(e), nn.LayerNorm(e)
        self.mlp_in, self.mlp_out = nn.Linear(e, m), nn.Linear(m, e)

    def residual(self, x, branch):
        return x + F.dropout(branch(x), p=self.p, training=self.training)

    def attend(self, x):
        x = self.norm1(x)
        B, T, E = x.shape
        a = self.attention
        q, k, v = (layer(x).view(B, T, self.h, -1).transpose(1, 2) for layer in (a.q_proj, a.k_proj, a.v_proj))
        q = q * q.shape[-1] ** -0.5
        low = torch.finfo(x.dtype).min
        top = torch.full_like(q[..., :1], low)
        total, acc = torch.zeros_like(top), torch.zeros_like(q)
        place = torch.arange(T, device=x.device)
        for j in range(0, T, self.CHUNK):
            s = q @ k[:, :, j : j + self.CHUNK].mT
            hidden = place[:, None] < place[j : j + self.CHUNK]
            s = s.masked_fill(hidden, low)
            new = torch.maximum(top, s.detach().amax(-1, keepdim=True))
            p, fix = (s - new).exp() * ~hidden, (top - new).exp()
            total, acc, top = total * fix + p.sum(-1, keepdim=True), acc * fix + p @ v[:, :, j : j + self.CHUNK], new
        return a.o_proj((acc / total).transpose(1, 2).reshape(B, T, E))

    def forward(self, x):
        x = self.residual(x, self.attend)
        return self.residual(x, lambda y: self.mlp_out(F.gelu(self.mlp_in(self.norm2(y)))))
