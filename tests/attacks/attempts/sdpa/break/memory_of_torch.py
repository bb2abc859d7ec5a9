# Memory eaten by torch.
# outcome: failed
# says: it ran out of memory
import torch


def scaled_dot_product_attention(q, k, v):
    return torch.empty(1 << 40)
