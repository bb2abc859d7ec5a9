# style: view on a copy that is contiguous, transpose; transpose, contiguous, view
import torch


def split_heads(x, num_heads):
    B, T, E = x.size()
    if E % num_heads:
        raise ValueError("num_heads must divide E")
    return x.contiguous().view(B, T, num_heads, E // num_heads).transpose(1, 2)


def merge_heads(x):
    B, H, T, D = x.size()
    return x.transpose(1, 2).contiguous().view(B, T, H * D)
