# breaks: output_dtype, float64_throughout, half_precision
# mistake: numerics.forced_float32
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        q, k, v = self.q_proj(x).float(), self.k_proj(x).float(), self.v_proj(x).float()
        return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
