# style: tokens in front, scores laid out (i, j, b) with the softmax over j, the bias as one more column of the weight
import torch
from torch import nn


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)

    def forward(self, x):
        lin = self.qkv_proj
        x1 = torch.cat([x, torch.ones_like(x[..., :1])], dim=-1).transpose(0, 1)  # (T, B, I + 1)
        w1 = torch.cat([lin.weight, lin.bias[:, None]], dim=1)
        y = torch.tensordot(x1, w1, dims=([2], [1]))  # (T, B, 3D)
        q, k, v = y.movedim(-1, 0).reshape(3, -1, *y.shape[:2])  # (D, T, B) each
        s = (q[:, :, None] * k[:, None]).sum(0) / q.shape[0] ** 0.5  # (i, j, B)
        p = s.sub(s.logsumexp(1, keepdim=True)).exp()
        return (p * v[:, None]).sum(2).permute(2, 1, 0)
