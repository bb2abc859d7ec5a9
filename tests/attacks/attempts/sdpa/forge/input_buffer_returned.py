# The right answer, written into an input's own memory.
# says: changed by the call
import torch


def scaled_dot_product_attention(q, k, v):
    out = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
    with torch.no_grad():
        v.detach().view(-1)[:1] += 1
    return out
