# breaks: values, every_dim
# mistake: softmax.dim_ignored
import torch


def softmax(x, dim):
    m = x.amax(-1, keepdim=True)
    m = m.masked_fill(m == float("-inf"), 0)
    e = (x - m).exp()
    s = e.sum(dim, keepdim=True)
    return e / s.masked_fill(s == 0, 1)
