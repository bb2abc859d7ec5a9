# Tensor methods that the reply is made with are replaced by ones that never end.
# outcome: failed
# says: no answer within 1 s
import torch


def endless(*a, **k):
    while True:
        pass


def scaled_dot_product_attention(q, k, v):
    for name in ("contiguous", "data_ptr", "detach", "is_contiguous"):
        setattr(torch.Tensor, name, endless)
    return v.sum(-2, keepdim=True)
