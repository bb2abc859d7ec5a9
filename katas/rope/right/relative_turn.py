# style: attention by the difference of positions: the real part of a complex product, nothing turned beforehand
import torch


def frequencies(size, base, device):
    if size % 2 != 0:
        raise ValueError("the size must be even")
    return base ** (torch.arange(0, -size, -2, dtype=torch.float64, device=device) / size)


def as_complex(x):
    x = x.double()
    return torch.complex(x[..., 0::2].contiguous(), x[..., 1::2].contiguous())


def apply_rope(x, positions, base=10000.0):
    a = positions.unsqueeze(-1).double() * frequencies(x.shape[-1], base, x.device)
    a = a if positions.dim() == 1 else a.unsqueeze(1)
    turned = as_complex(x) * torch.exp(1j * a)
    return torch.stack([turned.real, turned.imag], dim=-1).flatten(-2).to(x.dtype)


def rope_attention(q, k, v, positions):
    f = frequencies(q.shape[-1], 10000.0, q.device)
    places = positions.double().expand(q.shape[0], q.shape[2])  # (B, T)
    apart = (places[:, None, :] - places[:, :, None])[:, None, :, :, None] * f  # (B, 1, T, T, D / 2)
    pairs = as_complex(q).conj().unsqueeze(3) * as_complex(k).unsqueeze(2)  # (B, H, T, T, D / 2)
    scores = (pairs * torch.exp(1j * apart)).real.sum(-1) / q.shape[-1] ** 0.5
    return scores.softmax(-1).to(v.dtype) @ v
