# breaks: values, weights_sum_to_one
# mistake: none
import torch


def scaled_dot_product_attention(q, k, v):
    return torch.zeros(*q.shape[:-1], v.shape[-1], dtype=v.dtype, device=v.device)
