# torch is told to record nothing, by a call that C makes, so that no profile function sees it.
# outcome: failed
# fails: from_scratch
# says: calls F.scaled_dot_product_attention (line 
import torch

switch = torch._C._autograd._enable_record_function


def scaled_dot_product_attention(q, k, v):
    list(map(switch, [False]))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    list(map(switch, [True]))
    return out
