# breaks: parameters
# mistake: module.rebuilt
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.dims = input_dim, key_dim, value_dim

    def forward(self, x):
        i, k, v = self.dims
        q_proj = nn.Linear(i, k, bias=False).to(x)
        k_proj = nn.Linear(i, k, bias=False).to(x)
        v_proj = nn.Linear(i, v, bias=False).to(x)
        s = q_proj(x) @ k_proj(x).mT / k**0.5
        return s.softmax(-1) @ v_proj(x)
