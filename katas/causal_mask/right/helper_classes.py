# style: helper classes, a cached mask of Python lists, a decorator
import functools
import math

import torch


def logged(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        result = fn(*args, **kwargs)
        wrapper.calls += 1
        return result

    wrapper.calls = 0
    return wrapper


class MaskMaker:
    def __init__(self):
        self._made = {}

    def __call__(self, n, m, device):
        key = (n, m, str(device))
        if key not in self._made:
            rows = [[j <= i + m - n for j in range(m)] for i in range(n)]
            self._made[key] = torch.tensor(rows, dtype=torch.bool, device=device)
        return self._made[key]


_maker = MaskMaker()


@logged
def causal_mask(num_queries, num_keys, device=None):
    return _maker(num_queries, num_keys, device)


class Attention(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.register_buffer("scale", torch.tensor(1 / math.sqrt(d), dtype=torch.float64))

    def forward(self, q, k, v):
        scores = torch.einsum("...id,...jd->...ij", q * self.scale.to(q.dtype), k)
        allowed = causal_mask(q.size(-2), k.size(-2), q.device)
        scores = scores + torch.zeros_like(scores).masked_fill(~allowed, -math.inf)
        return torch.nn.Softmax(dim=-1)(scores) @ v


@logged
def causal_attention(q, k, v):
    return Attention(q.shape[-1])(q, k, v)
