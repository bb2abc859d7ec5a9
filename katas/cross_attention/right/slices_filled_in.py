# style: a loop over heads that writes slices of its own tensor, log(keep) added to the scores
# edge fails: nothing_to_attend_to
import torch
import torch.nn.functional as F
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        self.head_dim, rest = embed_dim // num_heads, embed_dim % num_heads
        if rest:
            raise ValueError(f"{rest} columns are left over")
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(context_dim, embed_dim)
        self.v_proj = nn.Linear(context_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, context, keep=None):
        q, k, v = self.q_proj(x), self.k_proj(context), self.v_proj(context)
        out = torch.zeros_like(q)
        for start in range(0, q.size(-1), self.head_dim):
            own = slice(start, start + self.head_dim)
            scores = torch.bmm(q[..., own], k[..., own].transpose(1, 2)) * self.head_dim**-0.5
            if keep is not None:
                scores = scores + torch.log(keep[:, None].to(scores.dtype))
            out[..., own] = F.softmax(scores, 2).bmm(v[..., own])
        return self.o_proj(out)
