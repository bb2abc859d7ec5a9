# breaks: non_contiguous_inputs
# mistake: layout.view_of_strided
import math

import torch.nn.functional as F
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)
        self.output_dim = output_dim

    def forward(self, x):
        B, T, I = x.shape
        q, k, v = self.qkv_proj(x.view(B * T, I)).view(B, T, -1).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.output_dim)
        weights = F.softmax(scores, dim=-1)
        return weights @ v
