# A transform there and back on the way.
# outcome: passed
import torch


def scaled_dot_product_attention(q, k, v):
    wide = v.to(torch.float64)
    there = torch.fft.rfft(wide, dim=-1)
    back = torch.fft.irfft(there, n=v.shape[-1], dim=-1).to(v.dtype)
    return (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1) @ back
