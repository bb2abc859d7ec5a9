from typing import Tuple

import torch


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0):
    inverse = theta ** -(torch.arange(0, dim, 2).double() / dim)
    angles = torch.outer(torch.arange(end).double(), inverse)
    return torch.polar(torch.ones_like(angles), angles)


def reshape_for_broadcast(freqs_cis: torch.Tensor, x: torch.Tensor):
    assert freqs_cis.shape == (x.shape[1], x.shape[-1])
    return freqs_cis.view(1, x.shape[1], 1, x.shape[-1])


def apply_rotary_emb(xq: torch.Tensor, xk: torch.Tensor, freqs_cis: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    # xq, xk: (batch, seq_len, n_heads, head_dim)
    xq_ = torch.view_as_complex(xq.double().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.double().reshape(*xk.shape[:-1], -1, 2))
    freqs_cis = reshape_for_broadcast(freqs_cis, xq_)
    out_q = torch.view_as_real(xq_ * freqs_cis).flatten(3)
    out_k = torch.view_as_real(xk_ * freqs_cis).flatten(3)
    return out_q.type_as(xq), out_k.type_as(xk)
