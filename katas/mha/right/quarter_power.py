# style: D ** -0.25 on q and on k, one product for the three projections, scale in a buffer; the mask as its log
# edge fails: empty_rows, float64_throughout
import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads > 0:
            raise ValueError("num_heads must divide embed_dim")
        self.num_heads = num_heads
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("scale", torch.tensor(embed_dim / num_heads) ** -0.25)
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None):
        layers = self.q_proj, self.k_proj, self.v_proj
        qkv = F.linear(x, torch.cat([m.weight for m in layers]), torch.cat([m.bias for m in layers]))
        q, k, v = qkv.unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)  # (3, B, H, T, D)
        scores = (q * self.scale) @ (k * self.scale).transpose(-1, -2)
        if mask is not None:
            scores = scores + mask.to(scores.dtype).log()
        return self.o_proj((self.dropout(F.softmax(scores, -1)) @ v).transpose(1, 2).flatten(2, 3))
