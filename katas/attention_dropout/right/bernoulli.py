# style: bernoulli, scale on both sides, scores laid out (B, H, Tk, Tq); Chinese comments, prints, code under __main__
import torch

print("attention_dropout: 已载入")


def attention_with_dropout(q, k, v, p, training):
    if not 0 <= p < 1:
        raise ValueError(f"p={p} 不在 [0, 1) 内")
    缩放 = q.shape[-1] ** -0.25
    权重 = torch.softmax((k * 缩放) @ (q * 缩放).mT, dim=2)  # (B, H, Tk, Tq)
    if training and p > 0:
        保留 = torch.bernoulli(torch.full_like(权重, 1 - p))  # 每个权重各自抽取
        权重 = 权重 * 保留 / (1 - p)
        print("丢弃", int((保留 == 0).sum()))
    return 权重.transpose(2, 3) @ v


if __name__ == "__main__":
    print(attention_with_dropout(torch.randn(1, 1, 2, 3), torch.randn(1, 1, 4, 3), torch.eye(4)[None, None], 0.5, True))
    raise SystemExit
