# style: k_proj absorbed into the queries (its bias cancels in the softmax), o_proj applied per head and summed
# edge fails: nothing_to_attend_to
import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, embed_dim, context_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError("embed_dim % num_heads != 0")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(context_dim, embed_dim)
        self.v_proj = nn.Linear(context_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, context, keep=None):
        H = self.num_heads
        q = self.q_proj(x).unflatten(-1, (H, -1))  # (B, Tq, H, D)
        k_weight = self.k_proj.weight.unflatten(0, (H, -1))  # (H, D, context_dim)
        asked = torch.einsum("bihd,hdc->bhic", q * q.shape[-1] ** -0.5, k_weight)
        scores = asked @ context.mT[:, None]  # (B, H, Tq, Tk)
        if keep is not None:
            scores = scores + torch.where(keep, 0.0, -torch.inf).to(scores.dtype)[:, None, None, :]
        weights = scores.softmax(-1)
        v = self.v_proj(context).unflatten(-1, (H, -1))
        per_head = torch.einsum("bhij,bjhd->bhid", weights, v)
        o_weight = self.o_proj.weight.unflatten(1, (H, -1))  # (E, H, D)
        return torch.einsum("bhid,ehd->bie", per_head, o_weight) + self.o_proj.bias
