"""References of the third set against what torch computes itself: an implementation that none of our code shares."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from attn_kata import catalog
from attn_kata.grading.local import load_namespace


def solution(slug: str) -> object:
    """The namespace of a reference, and random numbers that are the same in every run."""
    torch.manual_seed(0)
    return load_namespace(Path(catalog.find(slug).solution))


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-9, rtol=1e-9)


def heads(layer: torch.nn.Linear, x: Tensor, count: int) -> Tensor:
    return layer(x).unflatten(-1, (count, -1)).transpose(1, 2)


@pytest.mark.parametrize(("H", "G"), [(6, 2), (6, 3), (4, 1), (4, 4)])
def test_gqa_is_what_torch_gives_with_enable_gqa(H: int, G: int) -> None:
    module = solution("gqa").GroupedQueryAttention(H * 5, H, G).double()
    x, mask = randn(2, 7, H * 5), torch.rand(2, H, 7, 7) < 0.6
    mask |= torch.eye(7, dtype=torch.bool)
    parts = heads(module.q_proj, x, H), heads(module.k_proj, x, G), heads(module.v_proj, x, G)
    for given in (None, mask):
        ready = F.scaled_dot_product_attention(*parts, attn_mask=given, enable_gqa=True)

        close(module(x, given), module.o_proj(ready.transpose(1, 2).flatten(2)))
