# breaks: values
# mistake: none
import torch


def softmax(x, dim):
    return (x == x.amax(dim, keepdim=True)).to(x.dtype)
