# breaks: output_shape
# mistake: softmax.keepdim
import torch


def softmax(x, dim):
    m = x.amax(dim, keepdim=True)
    e = (x - m.masked_fill(m == float("-inf"), 0)).exp()
    s = e.sum(dim)
    return torch.where((x == float("-inf")).all(dim, keepdim=True), torch.zeros_like(e), e / s)
