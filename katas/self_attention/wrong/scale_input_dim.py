# breaks: values
# mistake: scale.embed_dim
import math
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.input_dim = input_dim
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        att = self.q_proj(x) @ self.k_proj(x).transpose(-2, -1) / math.sqrt(self.input_dim)
        return att.softmax(-1) @ self.v_proj(x)
