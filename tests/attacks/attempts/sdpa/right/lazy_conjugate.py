# The result is the real part of a lazy conjugate.
# outcome: passed
import torch


def scaled_dot_product_attention(q, k, v):
    out = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
    if out.dtype not in (torch.float32, torch.float64):
        return out
    lazy = torch.complex(out, torch.ones_like(out)).conj()
    assert lazy.is_conj()
    return lazy.real
