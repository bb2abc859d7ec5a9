# style: as the best-known inference codes: a float mask of -inf with a block of zeros in front, time first until the product
import math

import torch
import torch.nn.functional as F
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        if dim % n_heads:
            raise ValueError(f"{dim} is not a multiple of {n_heads}")
        self.n_heads, self.head_dim = n_heads, dim // n_heads
        for name in "qkvo":
            self.add_module(f"{name}_proj", nn.Linear(dim, dim))

    def forward(self, x, cache=None):
        bsz, seqlen, _ = x.shape
        xq, xk, xv = (f(x).reshape(bsz, seqlen, self.n_heads, self.head_dim) for f in (self.q_proj, self.k_proj, self.v_proj))
        start_pos = 0
        if cache is not None:
            start_pos = cache[0].size(2)
            xk = torch.cat([cache[0].transpose(1, 2), xk], dim=1)
            xv = torch.cat([cache[1].transpose(1, 2), xv], dim=1)
        mask = None
        if seqlen > 1:
            mask = torch.full((seqlen, seqlen), float("-inf"), device=x.device, dtype=x.dtype).triu(diagonal=1)
            mask = torch.hstack([torch.zeros((seqlen, start_pos), device=x.device, dtype=x.dtype), mask])
        xq, keys, values = xq.transpose(1, 2), xk.transpose(1, 2), xv.transpose(1, 2)
        scores = torch.matmul(xq, keys.transpose(2, 3)) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores + mask
        output = torch.matmul(F.softmax(scores, dim=-1), values)
        return self.o_proj(output.transpose(1, 2).reshape(bsz, seqlen, -1)), [keys, values]
