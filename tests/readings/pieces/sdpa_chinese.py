# 缩放点积注意力
import numpy as np
import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, q, k, v, attn_mask=None):
        # attn_mask 中 True 的位置不参与计算
        scores = torch.matmul(q, k.transpose(-1, -2)) / np.sqrt(k.shape[-1])
        if attn_mask is not None:
            scores = scores.masked_fill(attn_mask, -1e9)
        attn = self.softmax(scores)  # 在 key 的维度上归一化
        context = torch.matmul(attn, v)
        return context, attn
