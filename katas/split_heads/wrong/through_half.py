# breaks: float32
# mistake: none
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x):
    if x.dtype == torch.float32:
        x = x.bfloat16().float()
    return x.transpose(1, 2).flatten(2)
