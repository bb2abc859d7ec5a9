# style: batch and heads folded, additive bias in baddbmm, helper module with a buffer for the scale
# edge fails: nothing_to_attend_to
import torch
from torch import Tensor, nn


class Heads(nn.Module):
    """(B, T, E) <-> (B*H, T, D)"""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads

    def forward(self, x: Tensor) -> Tensor:
        B, T, E = x.shape
        return x.reshape(B, T, self.num_heads, -1).permute(0, 2, 1, 3).reshape(B * self.num_heads, T, -1)

    def undo(self, x: Tensor) -> Tensor:
        BH, T, D = x.shape
        return x.reshape(-1, self.num_heads, T, D).permute(0, 2, 1, 3).reshape(-1, T, self.num_heads * D)


class CrossAttention(nn.Module):
    def __init__(self, embed_dim: int, context_dim: int, num_heads: int) -> None:
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(num_heads)
        self.heads = Heads(num_heads)
        self.register_buffer("scale", torch.tensor((embed_dim // num_heads) ** -0.5, dtype=torch.float64), persistent=False)
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(context_dim, embed_dim)
        self.v_proj = nn.Linear(context_dim, embed_dim)
        self.o_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x: Tensor, context: Tensor, keep: Tensor | None = None) -> Tensor:
        q = self.heads(self.q_proj(x) * self.scale)
        k, v = self.heads(self.k_proj(context)), self.heads(self.v_proj(context))
        bias = q.new_zeros(q.shape[0], 1, k.shape[1])
        if keep is not None:
            bias = bias.masked_fill(~keep.repeat_interleave(self.heads.num_heads, 0)[:, None], torch.finfo(q.dtype).min)
        weights = torch.baddbmm(bias, q, k.transpose(1, 2)).softmax(-1)
        return self.o_proj(self.heads.undo(weights.bmm(v)))
