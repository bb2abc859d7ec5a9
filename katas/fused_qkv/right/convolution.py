# style: the projection as a convolution of width 1 over time, channels first throughout
import math

import torch.nn.functional as F
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)

    def forward(self, x):
        qkv = F.conv1d(x.transpose(1, 2), self.qkv_proj.weight.unsqueeze(-1), self.qkv_proj.bias)  # (B, 3D, T)
        q, k, v = qkv.split(qkv.size(1) // 3, dim=1)  # (B, D, T)
        scores = k.transpose(1, 2) @ q / math.sqrt(q.size(1))  # (B, keys, queries)
        return (v @ scores.softmax(dim=1)).transpose(1, 2)
