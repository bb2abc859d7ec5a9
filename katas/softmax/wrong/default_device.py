# breaks: device
# mistake: device.default
import torch


def softmax(x, dim):
    m = x.amax(dim, keepdim=True)
    m = torch.where(m == float("-inf"), torch.zeros(m.shape, dtype=x.dtype), m)
    e = (x - m).exp()
    s = e.sum(dim, keepdim=True)
    return e / s.masked_fill(s == 0, 1)
