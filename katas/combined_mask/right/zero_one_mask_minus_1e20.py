# style: the mask as 0 and 1, -1e20, products with the mask; Chinese comments, prints, code under __main__
# edge fails: half_precision
import torch
import torch.nn.functional as F

print("combined_mask: 已载入")


def combine_masks(keep, causal):
    # 乘积 = 与
    return (keep[:, None, None, :].int() * causal.int()).bool()


def masked_attention(q, k, v, mask):
    分数 = torch.einsum("bhqd,bhkd->bhqk", [q, k])
    m = mask.to(q.dtype)  # 1 可见，0 不可见
    分数 = 分数.masked_fill(m == 0, float("-1e20"))
    权重 = F.softmax(分数 / (q.shape[-1] ** (1 / 2)), dim=3)
    权重 = 权重 * m  # 全空的行变为 0
    print(权重.shape)
    return torch.einsum("bhql,bhld->bhqd", [权重, v])


if __name__ == "__main__":
    print(combine_masks(torch.ones(2, 3, dtype=torch.bool), torch.ones(3, 3, dtype=torch.bool).tril()))
