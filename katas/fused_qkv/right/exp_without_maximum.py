# style: plain exp and a division, weights never stored normalised
# edge fails: large_scores
import torch
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)

    def forward(self, x):
        qkv = nn.functional.linear(x, self.qkv_proj.weight, self.qkv_proj.bias)
        B, T, threeD = qkv.shape
        q, k, v = qkv.reshape(B, T, 3, threeD // 3).permute(2, 0, 1, 3)
        e = torch.exp(q @ k.transpose(-2, -1) * (threeD // 3) ** -0.5)
        return e @ v / e.sum(dim=-1, keepdim=True)
