# breaks: output_shape
# mistake: none
import torch


def scaled_dot_product_attention(q, k, v):
    out = torch.zeros_like(q)  # takes Dv for D
    out += (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ v
    return out
