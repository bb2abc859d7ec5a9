import math

import torch
from torch import nn


class AttentionKQV(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.d_head = d_head
        self.c_attn = nn.Linear(d_model, 3 * d_head)

    def forward(self, x):
        key, query, value = torch.split(self.c_attn(x), self.d_head, dim=-1)
        scores = torch.einsum("bid,bjd->bij", query, key) / math.sqrt(self.d_head)
        return torch.einsum("bij,bjd->bid", scores.softmax(dim=-1), value)
