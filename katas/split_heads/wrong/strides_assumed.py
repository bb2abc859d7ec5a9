# breaks: split_of_strided
# mistake: none
import torch


def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads:
        raise ValueError
    D = E // num_heads
    return torch.as_strided(x, (B, num_heads, T, D), (T * E, D, E, 1))


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
