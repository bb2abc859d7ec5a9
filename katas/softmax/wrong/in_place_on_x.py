# breaks: inputs_unmodified, gradients
# mistake: inputs.modified
import torch


def softmax(x, dim):
    m = x.amax(dim, keepdim=True)
    x -= m.masked_fill(m == float("-inf"), 0)
    e = x.exp()
    s = e.sum(dim, keepdim=True)
    return e / s.masked_fill(s == 0, 1)
