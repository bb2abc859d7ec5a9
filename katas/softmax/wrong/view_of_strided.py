# breaks: non_contiguous_inputs
# mistake: layout.view_of_strided
import torch


def softmax(x, dim):
    if dim < 0:
        dim += x.dim()
    before = 1
    for size in x.shape[:dim]:
        before *= size
    y = x.view(before, x.shape[dim], -1)
    m = y.amax(1, keepdim=True)
    e = (y - m.masked_fill(m == float("-inf"), 0)).exp()
    s = e.sum(1, keepdim=True)
    return (e / s.masked_fill(s == 0, 1)).view(x.shape)
