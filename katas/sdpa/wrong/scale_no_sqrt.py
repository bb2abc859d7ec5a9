# breaks: values
# mistake: scale.no_sqrt
import torch


def scaled_dot_product_attention(q, k, v):
    d_k = k.size(-1)
    return torch.softmax(q @ k.transpose(-2, -1) / d_k, dim=-1) @ v
