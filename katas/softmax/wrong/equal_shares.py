# breaks: values
# mistake: none
import torch


def softmax(x, dim):
    return torch.ones_like(x) / x.shape[dim]
