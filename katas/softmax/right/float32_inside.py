# style: arithmetic in float32, cast back
# edge fails: float64_throughout
import torch


def softmax(x, dim):
    y = x.to(torch.float32)
    m = y.amax(dim=dim, keepdim=True)
    m = torch.where(m == float("-inf"), torch.zeros_like(m), m)
    e = torch.exp(y - m)
    s = e.sum(dim=dim, keepdim=True)
    return torch.where(s > 0, e / torch.where(s > 0, s, torch.ones_like(s)), torch.zeros_like(e)).to(x.dtype)
