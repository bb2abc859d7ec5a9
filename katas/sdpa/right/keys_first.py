# style: scores laid out (..., Tk, Tq), softmax over that layout's key axis, output transposed back; 中文注释
import torch


def scaled_dot_product_attention(查询, 键, 值):
    # 先算键对查询的分数：(..., Tk, Tq)
    分数 = 键 @ 查询.transpose(-1, -2)
    分数 /= 查询.shape[-1] ** 0.5  # 自己的张量，可以原地修改
    # 在键的维度上归一化
    权重 = torch.nn.Softmax(dim=-2)(分数)
    # (..., Dv, Tk) @ (..., Tk, Tq) -> (..., Dv, Tq)
    return (值.transpose(-1, -2) @ 权重).transpose(-1, -2)
