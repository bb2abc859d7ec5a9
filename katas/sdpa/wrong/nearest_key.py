# breaks: values
# mistake: none
import torch


def scaled_dot_product_attention(q, k, v):
    best = (q @ k.transpose(-2, -1)).argmax(-1)
    return torch.take_along_dim(v, best[..., None], dim=-2)
