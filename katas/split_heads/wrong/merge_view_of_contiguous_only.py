# breaks: merge_of_strided
# mistake: layout.view_of_strided
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x):
    B, H, T, D = x.shape
    flat = x.view(B, H * T, D)
    return torch.cat([flat[:, h * T : (h + 1) * T] for h in range(H)], dim=-1)
