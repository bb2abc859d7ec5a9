# style: scores laid out (i, j, b, h), softmax over that layout's key axis; 中文注释, prints
# edge fails: empty_rows
import torch
from torch import nn

print("多头注意力")


class MultiHeadAttention(nn.Module):
    """多头自注意力。"""

    def __init__(self, 维度, 头数, 丢弃=0.0):
        super().__init__()
        if 维度 % 头数 != 0:
            raise ValueError("头数必须整除维度")
        self.头数 = 头数
        self.q_proj = nn.Linear(维度, 维度)
        self.k_proj = nn.Linear(维度, 维度)
        self.v_proj = nn.Linear(维度, 维度)
        self.o_proj = nn.Linear(维度, 维度)
        self.丢弃 = nn.Dropout(丢弃)

    def forward(self, x, mask=None):
        批, 长, 宽 = x.shape
        头 = self.头数
        # 时间放在最前面：(T, B, H, D)
        q = self.q_proj(x).transpose(0, 1).reshape(长, 批, 头, -1)
        k = self.k_proj(x).transpose(0, 1).reshape(长, 批, 头, -1)
        v = self.v_proj(x).transpose(0, 1).reshape(长, 批, 头, -1)
        分数 = torch.einsum("ibhd,jbhd->ijbh", q / (宽 // 头) ** 0.5, k)
        if mask is not None:
            print("mask", tuple(mask.shape))
            mask = mask.expand(批, 头, 长, 长).permute(2, 3, 0, 1)
            分数 = 分数.masked_fill(~mask, float("-inf"))
        权重 = self.丢弃(分数.softmax(dim=1))
        return self.o_proj(torch.einsum("ijbh,jbhd->ibhd", 权重, v).reshape(长, 批, 宽).transpose(0, 1))
