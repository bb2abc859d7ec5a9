# style: as Meta's Llama code: complex numbers, view_as_complex and torch.polar
# edge fails: float64_throughout, strided_last_dimension
import torch
import torch.nn.functional as F


def precompute_freqs_cis(dim, end, theta, device):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2, device=device)[: dim // 2].float() / dim))
    t = torch.arange(end, device=device)
    freqs = torch.outer(t, freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rope(x, positions, base=10000.0):
    if x.shape[-1] % 2:
        raise ValueError("odd head size")
    table = precompute_freqs_cis(x.shape[-1], int(positions.max()) + 1, base, x.device)
    freqs_cis = table[positions.long()]
    freqs_cis = freqs_cis.unsqueeze(1) if positions.ndim == 2 else freqs_cis
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
    x_ = torch.view_as_complex(wide.unflatten(-1, (-1, 2)))
    return torch.view_as_real(x_ * freqs_cis).flatten(3).type_as(x)


def rope_attention(q, k, v, positions):
    xq, xk = apply_rope(q, positions), apply_rope(k, positions)
    scores = torch.matmul(xq, xk.transpose(2, 3)) * xq.shape[-1] ** -0.5
    return torch.matmul(F.softmax(scores, dim=-1), v)
