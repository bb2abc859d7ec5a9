# breaks: neg_inf_entries
# mistake: none
import torch


def softmax(x, dim):
    hidden = x == float("-inf")
    x = x.masked_fill(hidden, -1000.0)
    e = (x - x.amax(dim, keepdim=True)).exp()
    return (e / e.sum(dim, keepdim=True)) * ~hidden.all(dim, keepdim=True)
