# breaks: output_shape
# mistake: layout.T_of_batch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)

    def forward(self, x):
        queries, keys, values = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        attn_scores = queries @ keys.T
        return (attn_scores / keys.shape[-1] ** 0.5).softmax(dim=-1) @ values
