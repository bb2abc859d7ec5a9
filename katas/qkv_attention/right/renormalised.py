# style: exp by hand, multiplied by the mask, then normalised; a dropout mask of its own
# edge fails: empty_rows, gradients_of_weights, large_scores
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

    def forward(self, query, key, value, mask=None):
        def heads(x):
            return torch.stack(x.chunk(self.num_heads, dim=-1), dim=1)

        q, k, v = heads(self.q_proj(query)), heads(self.k_proj(key)), heads(self.v_proj(value))
        s = q @ k.mT / q.shape[-1] ** 0.5
        e = torch.exp(s - s.amax(dim=-1, keepdim=True))
        if mask is not None:
            e = e * mask
        w = e / e.sum(-1, keepdim=True)
        kept = w
        if self.training and self.p > 0:
            kept = w * (torch.rand_like(w) >= self.p) / (1 - self.p)
        return self.o_proj(torch.cat((kept @ v).unbind(1), dim=-1)), w.detach().clone()
