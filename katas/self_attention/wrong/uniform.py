# breaks: values
# mistake: none
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        v = self.v_proj(x)
        return v.mean(-2, keepdim=True).expand_as(v)
