# style: one projection, then a loop over samples with matrices, the scale on both sides
import torch
from torch import nn


def attend_one(q, k, v):
    quarter = q.shape[1] ** -0.25
    s = (q * quarter).mm((k * quarter).t())
    return s.softmax(1).mm(v)


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim, output_dim):
        super().__init__()
        self.output_dim = output_dim
        self.qkv_proj = nn.Linear(input_dim, 3 * output_dim)

    def forward(self, x):
        d = self.output_dim
        projected = x @ self.qkv_proj.weight.T + self.qkv_proj.bias
        outputs = []
        for sample in projected:
            q, k, v = sample[:, :d], sample[:, d : 2 * d], sample[:, 2 * d :]
            outputs.append(attend_one(q, k, v))
        return torch.stack(outputs)
