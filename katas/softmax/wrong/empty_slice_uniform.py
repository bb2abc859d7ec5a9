# breaks: empty_slices
# mistake: softmax.empty_slice
import torch


def softmax(x, dim):
    x = x.clamp(min=torch.finfo(x.dtype).min)
    e = (x - x.amax(dim=dim, keepdim=True)).exp()
    return e / e.sum(dim=dim, keepdim=True)
