# breaks: output_shape
# mistake: none
import torch


def softmax(x, dim):
    order = [d for d in range(x.dim()) if d != dim] + [dim]
    y = x.permute(order)
    m = y.amax(-1, keepdim=True)
    e = (y - m.masked_fill(m == float("-inf"), 0)).exp()
    s = e.sum(-1, keepdim=True)
    out = e / s.masked_fill(s == 0, 1)
    return out.permute([order.index(d) for d in range(x.dim())])
