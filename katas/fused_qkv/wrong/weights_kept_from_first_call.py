# breaks: values
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
        if not hasattr(self, "w"):
            self.w, self.b = self.qkv_proj.weight.T.clone(), self.qkv_proj.bias.clone()
        q, k, v = (x @ self.w + self.b).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.output_dim)
        weights = F.softmax(scores, dim=-1)
        return weights @ v
