# style: keys are kept already scaled, einsum, exp and a sum by hand
# edge fails: large_scores
import torch
from torch import nn


class CachedSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        if embed_dim // num_heads * num_heads != embed_dim:
            raise ValueError
        self.shape = (num_heads, embed_dim // num_heads)
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, cache=None):
        q = self.q_proj(x).unflatten(-1, self.shape)  # (B, Tnew, H, D)
        k = (self.k_proj(x) * self.shape[1] ** -0.5).unflatten(-1, self.shape).permute(0, 2, 1, 3)
        v = self.v_proj(x).unflatten(-1, self.shape).permute(0, 2, 1, 3)
        if cache:
            k, v = torch.cat((cache[0], k), -2), torch.cat((cache[1], v), -2)
        place = torch.arange(k.shape[2], device=x.device)
        seen = place <= place[-x.shape[1] :, None]
        e = torch.exp(torch.einsum("bihd,bhjd->bhij", q, k)) * seen
        w = e / e.sum(-1, keepdim=True)
        out = torch.einsum("bhij,bhjd->bihd", w, v).flatten(2)
        return self.o_proj(out), (k, v)
