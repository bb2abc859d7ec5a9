# breaks: inputs_unmodified
# mistake: inputs.modified
import torch


def softmax(x, dim):
    hidden = x == float("-inf")
    if hidden.any():
        x[hidden] = torch.finfo(x.dtype).min
    e = (x - x.amax(dim, keepdim=True)).exp() * ~hidden
    s = e.sum(dim, keepdim=True)
    return e / s.masked_fill(s == 0, 1)
