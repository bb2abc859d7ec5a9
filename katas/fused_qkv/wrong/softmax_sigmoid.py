# breaks: values, weights_sum_to_one
# mistake: softmax.sigmoid
import math

import torch
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)
        self.output_dim = output_dim

    def forward(self, x):
        q, k, v = self.qkv_proj(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.output_dim)
        weights = torch.sigmoid(scores)
        return weights @ v
