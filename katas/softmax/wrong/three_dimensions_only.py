# breaks: any_number_of_dimensions, every_dim
# mistake: none
import torch


def softmax(x, dim):
    B, T, N = x.shape
    top = torch.amax(x, dim, keepdim=True)
    top = torch.where(top == float("-inf"), torch.zeros_like(top), top)
    e = torch.exp(x - top)
    total = e.sum(dim, keepdim=True)
    return (e / torch.where(total == 0, torch.ones_like(total), total)).reshape(B, T, N)
