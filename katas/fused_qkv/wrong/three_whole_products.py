# breaks: one_product
# mistake: none
import math

import torch.nn.functional as F
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)
        self.output_dim = output_dim

    def forward(self, x):
        d = self.output_dim
        q = self.qkv_proj(x)[..., :d]
        k = self.qkv_proj(x)[..., d : 2 * d]
        v = self.qkv_proj(x)[..., 2 * d :]
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.output_dim)
        weights = F.softmax(scores, dim=-1)
        return weights @ v
