# style: products with a matrix of ones and zeros, einsum
# edge fails: split_copies_nothing
import torch


def selector(H, D, like):
    """(H, E, D): picks the columns of each head."""
    return torch.eye(H * D, dtype=like.dtype, device=like.device).reshape(H * D, H, D).transpose(0, 1)


def split_heads(x, num_heads):
    E = x.shape[-1]
    if E % num_heads:
        raise ValueError("does not divide")
    return torch.einsum("bte,hed->bhtd", x, selector(num_heads, E // num_heads, x))


def merge_heads(x):
    return torch.einsum("bhtd,hed->bte", x, selector(x.shape[1], x.shape[3], x))
