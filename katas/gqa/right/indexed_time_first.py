# style: key-value heads picked by an index tensor; time first, (T, B, H, D); exp by hand and renormalised
# edge fails: keys_not_copied, empty_rows, large_scores
import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, num_kv_heads):
        super().__init__()
        if embed_dim % num_heads != 0 or num_heads % num_kv_heads != 0:
            raise ValueError
        self.num_heads = num_heads
        self.d = embed_dim // num_heads
        self.register_buffer("owner", torch.arange(num_heads) * num_kv_heads // num_heads)
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, num_kv_heads * self.d)
        self.v_proj = nn.Linear(embed_dim, num_kv_heads * self.d)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None):
        x = x.transpose(0, 1)
        q = self.q_proj(x).unflatten(2, (self.num_heads, self.d)) * self.d**-0.25
        k = self.k_proj(x).unflatten(2, (-1, self.d))[:, :, self.owner] * self.d**-0.25
        v = self.v_proj(x).unflatten(2, (-1, self.d)).index_select(2, self.owner)
        s = torch.einsum("ibhd,jbhd->bhij", q, k)
        e = torch.exp(s - s.amax(dim=-1, keepdim=True))
        if mask is not None:
            e = e * mask
        w = e / e.sum(-1, keepdim=True)
        return self.o_proj(torch.einsum("bhij,jbhd->bihd", w, v).flatten(2))
