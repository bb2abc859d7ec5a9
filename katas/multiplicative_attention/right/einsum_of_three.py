# style: one einsum over query, matrix and keys; a bare Parameter below a module of one's own; Chinese comments, prints
# edge fails: nothing_to_attend_to
import math

import torch
from torch import nn

print("multiplicative: 已载入")


class 投影(nn.Module):
    def __init__(self, 输入, 输出):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(输出, 输入))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))


class MultiplicativeAttention(nn.Module):
    def __init__(self, query_dim: int, key_dim: int):
        super().__init__()
        self.k_proj = 投影(key_dim, query_dim)

    def forward(self, 问, 键, 值, 保留=None):
        # 分数 = q^T W k，不缩放
        分数 = torch.einsum("bqi,ij,bkj->bqk", 问, self.k_proj.weight, 键)
        if 保留 is not None:
            偏置 = torch.zeros_like(分数[:, :1]).masked_fill_(~保留[:, None], -math.inf)
            分数 = 分数 + 偏置
        权重 = 分数.softmax(2)
        print("weights:", tuple(权重.shape))
        return torch.einsum("bqk,bkv->bqv", 权重, 值)


if __name__ == "__main__":
    print(MultiplicativeAttention(3, 4)(torch.randn(1, 2, 3), torch.randn(1, 5, 4), torch.randn(1, 5, 2)))
    raise SystemExit
