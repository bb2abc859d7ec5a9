# style: maximum, exp, sum; torch.where for a slice of nothing but -inf
# edge fails: gradient_of_empty_slices
import torch


def softmax(x, dim):
    shifted = x - x.max(dim=dim, keepdim=True).values
    e = torch.exp(shifted)
    out = e / e.sum(dim=dim, keepdim=True)
    return torch.where(torch.isnan(out), torch.zeros_like(out), out)
