# A reply of 100 MB.
# outcome: failed
# says: more than 64 MiB
import torch


def scaled_dot_product_attention(q, k, v):
    return torch.zeros(100 << 20, dtype=torch.uint8)
