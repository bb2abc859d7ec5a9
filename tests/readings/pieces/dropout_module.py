import math

import torch
from torch import nn


class DropAttention(nn.Module):
    def __init__(self, attn_pdrop=0.1):
        super().__init__()
        self.attn_drop = nn.Dropout(attn_pdrop)

    def forward(self, q, k, v):
        att = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        att = torch.softmax(att, dim=-1)
        att = self.attn_drop(att)
        return torch.matmul(att, v), att
