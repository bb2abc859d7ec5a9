# style: Chinese comments, prints, a float32 softmax cast back, the scale on both sides, code under __main__
# edge fails: float64_throughout
"""因果注意力：每个位置只能看到自己和之前的位置。"""
import torch
import torch.nn.functional as F

调试 = True


def causal_mask(查询数, 键数, 设备=None):
    # 查询是最后的 查询数 个位置
    偏移 = 键数 - 查询数
    行 = torch.arange(查询数, device=设备)[:, None] + 偏移
    列 = torch.arange(键数, device=设备)[None]
    return torch.le(列, 行)


def causal_attention(q, k, v):
    if 调试:
        print("形状:", q.shape, k.shape, v.shape)
    比例 = q.shape[-1] ** -0.25  # 两边各乘一次
    分数 = (q * 比例) @ (k * 比例).transpose(-2, -1)
    掩码 = causal_mask(q.shape[-2], k.shape[-2], q.device)
    分数 = 分数.masked_fill(~掩码, float("-inf"))
    权重 = F.softmax(分数.float(), dim=-1).type_as(q)
    return 权重 @ v


if __name__ == "__main__":
    q = torch.randn(1, 2, 3, 4)
    print(causal_attention(q, q, q))
