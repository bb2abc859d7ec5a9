# breaks: inputs_unmodified
# mistake: inputs.modified
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        k, v = self.k_proj(x), self.v_proj(x)
        x /= k.shape[-1] ** 0.5
        return (self.q_proj(x) @ k.mT).softmax(-1) @ v
