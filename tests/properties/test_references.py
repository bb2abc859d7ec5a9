"""The references of the katas of the third set against torch itself: its attention, and autograd."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention

from attn_kata import catalog
from attn_kata.grading.local import load_namespace

F64 = torch.float64


def reference(slug: str) -> ModuleType:
    return load_namespace(catalog.find(slug).solution)


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=F64)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-9, rtol=1e-9)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(17)


def test_qkv_attention_is_torchs_own_module() -> None:
    ours = reference("qkv_attention").MultiHeadAttention(12, 3).double()
    theirs = torch.nn.MultiheadAttention(12, 3, batch_first=True, dtype=F64)
    theirs.in_proj_weight.data = torch.cat([ours.q_proj.weight, ours.k_proj.weight, ours.v_proj.weight]).data
    theirs.in_proj_bias.data = torch.cat([ours.q_proj.bias, ours.k_proj.bias, ours.v_proj.bias]).data
    theirs.out_proj.load_state_dict(ours.o_proj.state_dict())
    query, key, value = drawn(2, 4, 12), drawn(2, 5, 12), drawn(2, 5, 12)
    mask = (torch.rand(4, 5) < 0.5) | (torch.arange(5) == 0)

    out, weights = ours(query, key, value, mask)
    right, right_weights = theirs(query, key, value, attn_mask=~mask, average_attn_weights=False)

    close(out, right)
    close(weights, right_weights)


def test_kv_cache_in_chunks_is_torchs_causal_attention() -> None:
    ours = reference("kv_cache").CachedSelfAttention(12, 3).double()
    x = drawn(2, 9, 12)
    q, k, v = (
        linear(x, layer.weight, layer.bias).view(2, 9, 3, 4).transpose(1, 2)
        for layer in (ours.q_proj, ours.k_proj, ours.v_proj)
    )
    right = ours.o_proj(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    outs, cache = [], None
    for chunk in x.split([3, 1, 5], dim=1):
        out, cache = ours(chunk, cache)
        outs.append(out)

    close(torch.cat(outs, dim=1), right)
    close(cache[0], k)


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention_and_merged_parts_are_torchs_attention(causal: bool) -> None:
    flash, online = reference("flash_attention"), reference("online_softmax")
    q, k, v = drawn(2, 3, 5, 7), drawn(2, 3, 8, 7), drawn(2, 3, 8, 4)
    mask = torch.ones(5, 8, dtype=torch.bool).tril(3) if causal else torch.ones(5, 8, dtype=torch.bool)
    right = scaled_dot_product_attention(q, k, v, mask)
    lse = (q @ k.mT / 7**0.5).masked_fill(~mask, float("-inf")).logsumexp(-1)

    for given in (flash.flash_attention(q, k, v, 2, 3, causal), flash.flash_attention(q, k, v, 9, 1, causal)):
        close(given[0], right)
        close(given[1], lse)
    parts = [
        online.partial_attention(q, k[:, :, part], v[:, :, part], mask[:, part]) for part in (slice(3), slice(3, 8))
    ]
    merged = online.merge_partials(*parts[1], *parts[0])
    close(merged[0], right)
    close(merged[1], lse)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_backward_is_autograd(masked: bool) -> None:
    ours = reference("attention_backward")
    q, k, v = drawn(2, 3, 5, 7), drawn(2, 3, 6, 7), drawn(2, 3, 6, 4)
    mask = (torch.rand(2, 1, 5, 6) < 0.5) | (torch.arange(6) == 0) if masked else None
    grad_out = drawn(2, 3, 5, 4)
    leaves = [part.clone().requires_grad_() for part in (q, k, v)]
    right = torch.autograd.grad(scaled_dot_product_attention(*leaves, mask), leaves, grad_out)

    _, saved = ours.attention_forward(q, k, v, mask)

    for got, wanted in zip(ours.attention_backward(grad_out, saved), right, strict=True):
        close(got, wanted)
