# style: online softmax over chunks of keys
import math

import torch
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    CHUNK = 2

    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)

    def forward(self, x):
        q, k, v = torch.tensor_split(self.qkv_proj(x), 3, dim=-1)
        q = q / math.sqrt(q.shape[-1])
        m = torch.full_like(q[..., :1], -math.inf)
        total = torch.zeros_like(m)
        acc = torch.zeros_like(v)
        for kc, vc in zip(k.split(self.CHUNK, 1), v.split(self.CHUNK, 1)):
            s = q @ kc.mT
            new = torch.maximum(m, s.max(-1, keepdim=True)[0])
            p = (s - new).exp()
            old = (m - new).exp()
            total = total * old + p.sum(-1, keepdim=True)
            acc = acc * old + p @ vc
            m = new
        return acc / total
