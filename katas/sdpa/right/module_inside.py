# style: a module with the scale in a buffer does the work; broadcast products instead of matmul
# edge fails: float64_throughout
import torch
from torch import nn


class _Attend(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.register_buffer("scale", torch.tensor(float(d)).rsqrt())

    def forward(self, q, k, v):
        s = (q[..., :, None, :] * k[..., None, :, :]).sum(-1) * self.scale.to(q)
        w = (s - s.logsumexp(-1, keepdim=True)).exp()
        return (w[..., None] * v[..., None, :, :]).sum(-2)


def scaled_dot_product_attention(q, k, v):
    return _Attend(q.shape[-1])(q, k, v)
