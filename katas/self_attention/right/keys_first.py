# style: scores laid out keys first, softmax over that layout's key dimension
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        for name, size in zip("qkv", (key_dim, key_dim, value_dim)):
            setattr(self, f"{name}_proj", nn.Linear(input_dim, size, bias=False))

    def forward(self, x):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        s = torch.matmul(k, q.swapaxes(-1, -2)).div(k.new_tensor(float(k.size(-1))).sqrt())  # (..., keys, queries)
        return s.softmax(-2).swapaxes(-1, -2).matmul(v)
