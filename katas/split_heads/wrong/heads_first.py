# breaks: split_shape
# mistake: split.order
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return torch.stack(x.chunk(num_heads, -1))


def merge_heads(x):
    return torch.cat(list(x.transpose(0, 1)), -1)
