# style: leading dimensions folded into one, baddbmm, the scale in a buffer
# edge fails: float64_throughout
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj, self.k_proj = (nn.Linear(input_dim, key_dim, bias=False) for _ in range(2))
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)
        self.register_buffer("scale", torch.tensor(float(key_dim)).rsqrt())

    def forward(self, x):
        q, k, v = (proj(x).flatten(0, -3) if x.dim() > 2 else proj(x)[None] for proj in (self.q_proj, self.k_proj, self.v_proj))
        empty = torch.empty(q.shape[0], q.shape[1], k.shape[1], dtype=q.dtype, device=q.device)
        scores = torch.baddbmm(empty, q, k.transpose(1, 2), beta=0, alpha=1.0) * self.scale.to(q.dtype)
        return torch.bmm(scores.softmax(2), v).reshape(*x.shape[:-1], v.shape[-1])
