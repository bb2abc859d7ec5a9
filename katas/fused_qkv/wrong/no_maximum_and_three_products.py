# breaks: one_product, large_scores
# mistake: numerics.no_max
import math

from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)
        self.output_dim = output_dim

    def forward(self, x):
        w, b = self.qkv_proj.weight.chunk(3), self.qkv_proj.bias.chunk(3)
        q, k, v = (x @ w[part].T + b[part] for part in range(3))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.output_dim)
        e = scores.exp()
        weights = e / e.sum(-1, keepdim=True)
        return weights @ v
