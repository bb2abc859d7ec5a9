# A result of a few bytes that is expanded to more than there is memory.
# outcome: failed
# says: returned a tensor of shape
import torch


def scaled_dot_product_attention(q, k, v):
    return torch.zeros(1).expand(1 << 20, 1 << 20, 1 << 20)
