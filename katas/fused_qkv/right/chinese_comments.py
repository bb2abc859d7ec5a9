# style: Chinese comments, prints, a float32 softmax cast back, code under __main__
# edge fails: float64_throughout
import torch
import torch.nn as nn
import torch.nn.functional as F


class FusedQKVSelfAttention(nn.Module):
    """融合投影的自注意力"""

    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.维度 = output_dim
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)  # 一次算出 q、k、v

    def forward(self, x):
        qkv = self.qkv_proj(x)
        q, k, v = torch.split(qkv, self.维度, dim=-1)
        分数 = torch.bmm(q, k.permute(0, 2, 1)) / (self.维度 ** 0.5)
        print("分数的形状", tuple(分数.shape))
        权重 = F.softmax(分数, dim=-1, dtype=torch.float32).to(v.dtype)
        return torch.bmm(权重, v)


if __name__ == "__main__":
    模型 = FusedQKVSelfAttention(4, 2)
    print(模型(torch.randn(1, 3, 4)))
