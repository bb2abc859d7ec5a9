# breaks: empty_slices
# mistake: softmax.empty_slice
import torch


def softmax(x, dim):
    x = x - x.max(dim=dim, keepdim=True).values
    e = x.exp()
    return e / e.sum(dim=dim, keepdim=True)
