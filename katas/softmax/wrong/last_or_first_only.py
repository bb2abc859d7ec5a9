# breaks: values, every_dim
# mistake: none
import torch


def softmax(x, dim):
    y = x if dim in (-1, x.dim() - 1) else x.transpose(0, -1)
    m = y.amax(-1, keepdim=True)
    e = (y - m.masked_fill(m == float("-inf"), 0)).exp()
    s = e.sum(-1, keepdim=True)
    out = e / s.masked_fill(s == 0, 1)
    return out if dim in (-1, x.dim() - 1) else out.transpose(0, -1)
