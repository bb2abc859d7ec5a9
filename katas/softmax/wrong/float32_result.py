# breaks: output_dtype
# mistake: numerics.forced_float32
import torch


def softmax(x, dim):
    x = x.float()
    m = x.amax(dim, keepdim=True)
    e = (x - m.masked_fill(m == float("-inf"), 0)).exp()
    s = e.sum(dim, keepdim=True)
    return e / s.masked_fill(s == 0, 1)
