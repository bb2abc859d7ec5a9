# style: einsum throughout, three-letter names
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_in, d_k, d_v):
        super().__init__()
        self.q_proj = nn.Linear(d_in, d_k, bias=False)
        self.k_proj = nn.Linear(d_in, d_k, bias=False)
        self.v_proj = nn.Linear(d_in, d_v, bias=False)
        self.d_k = d_k

    def forward(self, x):
        att = torch.einsum("...id,...jd->...ij", self.q_proj(x), self.k_proj(x)) * self.d_k**-0.5
        return torch.einsum("...ij,...jd->...id", torch.softmax(att, -1), self.v_proj(x))
