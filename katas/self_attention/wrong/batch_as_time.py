# breaks: values, samples_are_independent
# mistake: layout.batch_as_time
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        y = x.transpose(0, 1)
        q, k = self.q_proj(y), self.k_proj(y)
        return ((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ self.v_proj(y)).transpose(0, 1)
