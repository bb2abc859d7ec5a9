# The result carries a lazy negative bit.
# outcome: passed
import torch


def scaled_dot_product_attention(q, k, v):
    out = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
    if out.dtype not in (torch.float32, torch.float64):
        return out
    lazy = torch.complex(torch.zeros_like(out), -out).conj().imag
    assert lazy.is_neg()
    return lazy
