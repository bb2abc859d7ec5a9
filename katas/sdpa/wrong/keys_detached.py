# breaks: gradients
# mistake: gradient.detached
import torch


def scaled_dot_product_attention(q, k, v):
    with torch.no_grad():
        keys = k / q.shape[-1] ** 0.5
    return (q @ keys.transpose(-2, -1)).softmax(-1) @ v
