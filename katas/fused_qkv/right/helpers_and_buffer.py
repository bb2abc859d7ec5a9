# style: a helper module without parameters, the scale in a buffer, type hints, a decorator
from __future__ import annotations

import functools
from typing import NamedTuple

import torch
from torch import Tensor, nn


class QKV(NamedTuple):
    query: Tensor
    key: Tensor
    value: Tensor


def three_dimensional(forward):
    @functools.wraps(forward)
    def checked(self, x: Tensor) -> Tensor:
        if x.dim() != 3:
            raise ValueError(f"expected (B, T, input_dim), got {tuple(x.shape)}")
        return forward(self, x)

    return checked


class ScaledDotProduct(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("root", torch.tensor(dim).double().sqrt())

    def forward(self, parts: QKV) -> Tensor:
        scores = torch.einsum("nid,njd->nij", parts.query, parts.key).div(self.root)
        return torch.einsum("nij,njd->nid", torch.softmax(scores, dim=-1), parts.value)


class FusedQKVSelfAttention(nn.Module):
    def __init__(self, input_dim: int, output_dim: int):
        super().__init__()
        self.qkv_proj = nn.Linear(in_features=input_dim, out_features=3 * output_dim)
        self.attend = ScaledDotProduct(output_dim)

    @three_dimensional
    def forward(self, x: Tensor) -> Tensor:
        return self.attend(QKV(*self.qkv_proj(x).chunk(3, -1)))
