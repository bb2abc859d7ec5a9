# breaks: values, every_token_counts
# mistake: none
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)
        self.output_dim = output_dim

    def forward(self, x):
        self.qkv_proj(x)
        return x.new_zeros(x.shape[0], x.shape[1], self.output_dim)
