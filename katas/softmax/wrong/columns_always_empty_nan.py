# breaks: values, every_dim
# mistake: softmax.dim_ignored + softmax.empty_slice
import torch


def softmax(x, dim=0):
    e = (x - x.max(0)[0]).exp()
    return e / e.sum(0).clamp_min(1e-3)
