# breaks: one_product
# mistake: none
import math

import torch
import torch.nn.functional as F
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)
        self.output_dim = output_dim

    def forward(self, x):
        w = self.qkv_proj.weight.view(3, self.output_dim, -1)
        b = self.qkv_proj.bias.view(3, 1, 1, -1)
        q, k = torch.einsum("bti,sdi->sbtd", x, w[:2]) + b[:2]
        v = torch.einsum("bti,di->btd", x, w[2]) + b[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.output_dim)
        weights = F.softmax(scores, dim=-1)
        return weights @ v
