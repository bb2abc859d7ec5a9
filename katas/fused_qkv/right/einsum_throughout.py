# style: einsum for everything, the projection too, with the weight seen as (3, D, input_dim)
import torch
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.d = output_dim
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)

    def forward(self, x):
        w = self.qkv_proj.weight.view(3, self.d, -1)
        bias = self.qkv_proj.bias.view(3, 1, 1, self.d)
        q, k, v = torch.einsum("bti,sdi->sbtd", x, w) + bias
        s = torch.einsum("bqd,bkd->bqk", q, k) / self.d**0.5
        return torch.einsum("bqk,bkd->bqd", s.softmax(-1), v)
