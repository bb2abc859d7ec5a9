# style: mask after the softmax, divided by what is left; permute instead of transpose; functional linear
# edge fails: nothing_to_attend_to, large_scores
import torch
from torch import nn
from torch.nn.functional import linear


class CrossAttention(nn.Module):
    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(context_dim, embed_dim)
        self.v_proj = nn.Linear(context_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)
        if embed_dim % num_heads:
            raise ValueError("embed_dim % num_heads != 0")

    def forward(self, x, context, keep=None):
        b, n, e = x.size()
        d = e // self.num_heads
        q = linear(x, self.q_proj.weight, self.q_proj.bias).reshape(b, n, self.num_heads, d).permute(0, 2, 1, 3)
        k = linear(context, self.k_proj.weight, self.k_proj.bias).reshape(b, -1, self.num_heads, d).permute(0, 2, 3, 1)
        v = linear(context, self.v_proj.weight, self.v_proj.bias).reshape(b, -1, self.num_heads, d).permute(0, 2, 1, 3)
        weights = (q @ k / d**0.5).softmax(-1)
        if keep is not None:
            weights = weights * keep[:, None, None]
            weights = weights / weights.sum(-1, keepdim=True)
        return linear((weights @ v).permute(0, 2, 1, 3).reshape(b, n, e), self.o_proj.weight, self.o_proj.bias)
