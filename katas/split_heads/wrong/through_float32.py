# breaks: split_of_strided
# mistake: none
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    wide = torch.as_strided(x, x.shape, (x.shape[1] * x.shape[2], x.shape[2], 1))
    return wide.float().to(x.dtype).unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
