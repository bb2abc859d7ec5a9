# breaks: output_dtype, half_precision
# mistake: none
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError
    return torch.stack(x.chunk(num_heads, -1), 1)


def merge_heads(x):
    H, D = x.shape[1], x.shape[3]
    eye = torch.eye(H * D, dtype=torch.float64, device=x.device).reshape(H, D, -1)
    return torch.einsum("bhtd,hde->bte", x.double(), eye)
