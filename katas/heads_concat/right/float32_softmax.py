# style: float32 softmax cast back, the scale in a buffer, hstack of columns
# edge fails: float64_throughout
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj, self.k_proj = [nn.Linear(input_dim, key_dim, bias=False) for _ in "qk"]
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)
        self.register_buffer("scale", torch.tensor(key_dim**-0.25), persistent=False)

    def forward(self, x):
        q, k = self.q_proj(x) * self.scale.to(x.dtype), self.k_proj(x) * self.scale.to(x.dtype)
        p = torch.softmax((q @ k.mT).float(), -1).to(x.dtype)
        return p @ self.v_proj(x)


class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim, num_heads):
        super().__init__()
        self.heads = nn.ModuleList()
        self.heads.extend(Head(input_dim, key_dim, value_dim) for _ in range(num_heads))

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-2).flatten(-2)
