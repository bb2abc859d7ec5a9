# breaks: inputs_unmodified, gradients
# mistake: inputs.modified
import math

import torch.nn.functional as F
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)
        self.output_dim = output_dim

    def forward(self, x):
        x *= 2
        q, k, v = F.linear(x, self.qkv_proj.weight / 2, self.qkv_proj.bias).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.output_dim)
        weights = F.softmax(scores, dim=-1)
        return weights @ v
