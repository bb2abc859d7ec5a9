# style: the heads hold weights only; forward stacks them and runs the fused form
import torch
from torch import nn


class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.heads = nn.ModuleList(
            nn.ModuleDict(
                {
                    "q_proj": nn.Linear(input_dim, key_dim, bias=False),
                    "k_proj": nn.Linear(input_dim, key_dim, bias=False),
                    "v_proj": nn.Linear(input_dim, value_dim, bias=False),
                }
            )
            for _ in range(num_heads)
        )

    def _all(self, x, name):
        weight = torch.cat([head[name].weight for head in self.heads])  # (H * size, input_dim)
        return (x @ weight.T).unflatten(-1, (self.num_heads, -1)).transpose(-2, -3)  # (..., H, T, size)

    def forward(self, x):
        q, k, v = (self._all(x, name) for name in ("q_proj", "k_proj", "v_proj"))
        weights = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1)
        return (weights @ v).transpose(-2, -3).flatten(-2)
