# style: one view to (B, T, 3, D), unbind, F.softmax
import torch
import torch.nn as nn
import torch.nn.functional as F


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super(FusedQKVSelfAttention, self).__init__()
        self.output_dim = output_dim
        self.qkv_proj = nn.Linear(input_dim, output_dim * 3, bias=True)

    def forward(self, inputs):
        b, t, _ = inputs.size()
        qkv = self.qkv_proj(inputs).view(b, t, 3, self.output_dim)
        q, k, v = qkv.unbind(dim=2)
        att = torch.matmul(q, k.transpose(1, 2)) * self.output_dim ** -0.5
        att = F.softmax(att, dim=2)
        return torch.matmul(att, v)
