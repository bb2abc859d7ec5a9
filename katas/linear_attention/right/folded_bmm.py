# style: batch and heads folded; relu and exp for the feature map; weights of a mean kept as running means
import torch


def feature(x):
    return torch.relu(x) + torch.exp(-torch.relu(-x))


def linear_attention(q, k, v, causal=False):
    B, H, Tq, D = q.shape
    q, k, v = (part.reshape(B * H, part.size(2), part.size(3)) for part in (q, k, v))
    q, k = feature(q), feature(k)
    if causal:
        outer = torch.cumsum(k[:, :, :, None] * v[:, :, None, :], 1)
        top = torch.matmul(q[:, :, None, :], outer)[:, :, 0]
        bottom = (q * torch.cumsum(k, 1)).sum(2, keepdim=True)
    else:
        top = torch.bmm(q, torch.bmm(k.transpose(1, 2), v))
        bottom = torch.bmm(q, k.sum(1).unsqueeze(2))
    return (top / bottom).view(B, H, Tq, -1)
