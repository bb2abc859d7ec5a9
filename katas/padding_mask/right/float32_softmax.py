# style: softmax in float32 and cast back, Chinese comments, prints, code under __main__
# edge fails: nothing_to_attend_to, float64_throughout
import math

import torch

print("padding_mask: 已载入")


def padding_mask(lengths: torch.Tensor, max_len: int) -> torch.Tensor:
    # 位置 < 长度 的地方为 True
    位置 = torch.arange(max_len, device=lengths.device).repeat(lengths.size(0), 1)
    return torch.lt(位置, lengths.view(-1, 1))


def padded_attention(q, k, v, keep):
    # 计算注意力分数
    分数 = q @ k.transpose(-2, -1)
    分数 = 分数 / math.sqrt(k.size(-1))
    # 填充位置 → 负无穷
    分数 = 分数.float().masked_fill_(~keep.view(keep.size(0), 1, 1, -1), -torch.inf)
    权重 = torch.softmax(分数, dim=-1).to(q.dtype)
    print("weights:", tuple(权重.shape))
    return 权重 @ v


if __name__ == "__main__":
    print(padding_mask(torch.tensor([2, 3]), 4))
    raise SystemExit("只在直接运行时到这里")
