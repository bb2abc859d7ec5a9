# style: loops over heads and queries, raw exp, Chinese comments, prints, code under __main__
# edge fails: large_scores
import torch
from torch import nn


class 头(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim):
        super().__init__()
        self.q_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.k_proj = nn.Linear(input_dim, key_dim, bias=False)
        self.v_proj = nn.Linear(input_dim, value_dim, bias=False)


class MultiHeadAttentionWrapper(nn.Module):
    def __init__(self, input_dim, key_dim, value_dim, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(头(input_dim, key_dim, value_dim) for _ in range(num_heads))
        print("heads:", num_heads)

    def forward(self, x):
        outputs = []
        for head in self.heads:
            q, k, v = head.q_proj(x), head.k_proj(x), head.v_proj(x)
            rows = []
            for i in range(x.shape[-2]):
                # 每个查询单独计算
                e = ((k * q[..., i : i + 1, :]).sum(-1) / q.shape[-1] ** 0.5).exp()
                e = e / e.sum(-1, keepdim=True)
                rows.append((e[..., None] * v).sum(-2))
            outputs.append(torch.stack(rows, dim=-2))
        return torch.cat(outputs, dim=-1)


if __name__ == "__main__":
    print(MultiHeadAttentionWrapper(3, 2, 4, 2)(torch.randn(1, 2, 3)).shape)
