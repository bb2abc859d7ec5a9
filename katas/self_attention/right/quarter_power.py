# style: D ** -0.25 on q and on k, float32 softmax cast back, Chinese comments
# edge fails: float64_throughout
import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    """单头自注意力"""

    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        # 三个投影，没有偏置
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)
        self.scale = key_dim ** (-0.25)

    def forward(self, x):
        q, k, v = self.q_proj(x) * self.scale, self.k_proj(x) * self.scale, self.v_proj(x)
        # 对每个查询归一化
        attn = F.softmax(torch.matmul(q, k.transpose(-2, -1)), dim=-1, dtype=torch.float32)
        return torch.matmul(attn.to(v.dtype), v)
