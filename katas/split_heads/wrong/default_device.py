# breaks: device
# mistake: device.default
import torch


def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads != 0:
        raise ValueError
    out = torch.zeros(B, num_heads, T, E // num_heads, dtype=x.dtype)
    out[:] = x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    return out


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
