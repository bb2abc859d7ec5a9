# breaks: non_contiguous_inputs
# mistake: layout.view_of_strided
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        tokens = x.view(-1, x.size(-1))
        q = self.q_proj(tokens).view(*x.shape[:-1], -1)
        k = self.k_proj(tokens).view(*x.shape[:-1], -1)
        v = self.v_proj(tokens).view(*x.shape[:-1], -1)
        return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
