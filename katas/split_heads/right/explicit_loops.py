# style: loops over heads that write into a tensor of one's own
# edge fails: split_copies_nothing
import torch


def split_heads(x, num_heads):
    B, T, E = x.shape
    if E % num_heads != 0:
        raise ValueError("E is not a multiple of num_heads")
    D = E // num_heads
    out = torch.empty(B, num_heads, T, D, dtype=x.dtype, device=x.device)
    for h in range(num_heads):
        out[:, h] = x[:, :, h * D : (h + 1) * D]
    return out


def merge_heads(x):
    B, H, T, D = x.shape
    out = x.new_zeros(B, T, H * D)
    for h in range(H):
        out[:, :, h * D : (h + 1) * D] = x[:, h]
    return out
