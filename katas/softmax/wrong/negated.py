# breaks: values
# mistake: softmax.negated
import torch


def softmax(x, dim):
    m = x.amax(dim, keepdim=True)
    m = m.masked_fill(m == float("-inf"), 0)
    e = torch.exp(m - x)
    s = e.sum(dim, keepdim=True)
    return (e / s).masked_fill((x == float("-inf")).all(dim, keepdim=True), 0)
