# breaks: output_dtype
# mistake: numerics.default_dtype
import torch


def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads != 0:
        raise ValueError
    D = E // num_heads
    out = torch.zeros(B, num_heads, T, D, device=x.device)
    for h in range(num_heads):
        out[:, h] = x[:, :, h * D : (h + 1) * D]
    return out


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
