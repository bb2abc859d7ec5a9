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


@pytest.mark.parametrize(("Tq", "Tk", "window", "sinks"), [(7, 7, 3, 0), (4, 9, 2, 2), (1, 6, 9, 1)])
def test_sliding_window_is_what_torch_gives_under_two_triangles(Tq: int, Tk: int, window: int, sinks: int) -> None:
    q, k, v = randn(2, 3, Tq, 5), randn(2, 3, Tk, 5), randn(2, 3, Tk, 4)
    whole = torch.ones(Tk, Tk, dtype=torch.bool).tril()
    band = whole.triu(1 - window)
    band[:, :sinks] |= whole[:, :sinks]
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=band[Tk - Tq :])

    close(solution("sliding_window").sliding_window_attention(q, k, v, window, sinks), expected)


@pytest.mark.parametrize(("H", "Tq", "Tk"), [(4, 6, 6), (6, 3, 8), (1, 1, 5)])
def test_alibi_is_what_torch_gives_with_a_float_mask(H: int, Tq: int, Tk: int) -> None:
    q, k, v = randn(2, H, Tq, 5), randn(2, H, Tk, 5), randn(2, H, Tk, 4)
    slopes = {4: [1 / 4, 1 / 16, 1 / 64, 1 / 256], 6: [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8], 1: [1 / 256]}[H]
    bias = torch.tensor(slopes, dtype=torch.float64)[:, None, None] * torch.arange(Tk)  # (H, 1, Tk), as slope * j
    bias = bias + torch.full((Tq, Tk), float("-inf"), dtype=torch.float64).triu(Tk - Tq + 1)

    close(solution("alibi").alibi_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, attn_mask=bias))


@pytest.mark.parametrize("positions", [torch.tensor([4, 0, 9, 1000]), torch.tensor([[0, 1, 2, 3], [7, 5, 30, 6]])])
def test_rope_is_a_product_of_complex_numbers(positions: Tensor) -> None:
    rope, D = solution("rope"), 8
    q, k, v = randn(2, 3, 4, D), randn(2, 3, 4, D), randn(2, 3, 4, 5)
    places = positions.expand(2, 4)[:, None, :, None].double()
    turn = torch.polar(
        torch.ones(2, 1, 4, D // 2, dtype=torch.float64), places / 10000 ** (torch.arange(0, D, 2) / D).double()
    )
    turned = [
        torch.view_as_real(torch.view_as_complex(part.unflatten(-1, (-1, 2))) * turn).flatten(-2) for part in (q, k)
    ]

    torch.testing.assert_close(rope.apply_rope(q, positions), turned[0], atol=1e-4, rtol=0)  # arange / D is in float32
    torch.testing.assert_close(
        rope.rope_attention(q, k, v, positions), F.scaled_dot_product_attention(*turned, v), atol=1e-3, rtol=0
    )


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_is_the_quadratic_definition_with_elu_of_torch(causal: bool) -> None:
    q, k, v = randn(2, 3, 6, 4), randn(2, 3, 6, 4), randn(2, 3, 6, 5)
    weights = torch.einsum("bhid,bhjd->bhij", F.elu(q) + 1, F.elu(k) + 1)
    weights = weights.tril() if causal else weights
    expected = (weights / weights.sum(-1, keepdim=True)) @ v

    close(solution("linear_attention").linear_attention(q, k, v, causal), expected)


def test_transformer_block_is_a_pre_norm_encoder_layer_of_torch() -> None:
    E, H, M = 12, 3, 20
    block = solution("transformer_block").TransformerBlock(E, H, M).double()
    layer = torch.nn.TransformerEncoderLayer(E, H, M, 0.0, F.gelu, batch_first=True, norm_first=True).double()
    fused = [block.attention.q_proj, block.attention.k_proj, block.attention.v_proj]
    for part in ("weight", "bias"):
        getattr(layer.self_attn, f"in_proj_{part}").data = torch.cat([getattr(each, part).data for each in fused])
    pairs = {"self_attn.out_proj": "attention.o_proj", "linear1": "mlp_in", "linear2": "mlp_out"}
    for theirs, ours in {**pairs, "norm1": "norm1", "norm2": "norm2"}.items():
        layer.get_submodule(theirs).load_state_dict(block.get_submodule(ours).state_dict())
    x = randn(2, 7, E)
    later = torch.full((7, 7), float("-inf"), dtype=torch.float64).triu(1)

    close(block(x), layer(x, src_mask=later, is_causal=True))


def test_mla_is_what_torch_gives_for_its_queries_and_keys_side_by_side() -> None:
    H, D, R = 3, 4, 6
    module = solution("mla").LatentAttention(10, H, D, 5, R).double()
    x = randn(2, 7, 10)
    a = torch.arange(7.0, dtype=torch.float64)[:, None] * 10000 ** (-torch.arange(0, R, 2, dtype=torch.float64) / R)
    turn = torch.polar(torch.ones_like(a), a)  # (T, R / 2)

    def turned(part: Tensor) -> Tensor:
        return torch.view_as_real(torch.view_as_complex(part.unflatten(-1, (-1, 2)).contiguous()) * turn).flatten(-2)

    q, latent = heads(module.q_proj, x, H), module.kv_down(x)
    q = torch.cat([q[..., :D], turned(q[..., D:])], -1)
    k = torch.cat([heads(module.k_up, latent, H), turned(module.k_rope(x)[:, None]).expand(-1, H, -1, -1)], -1)
    ready = F.scaled_dot_product_attention(q, k, heads(module.v_up, latent, H), is_causal=True)

    close(module(x), module.o_proj(ready.transpose(1, 2).flatten(2)))


@pytest.mark.parametrize(("H", "G", "S"), [(6, 2, 4), (4, 1, 1), (3, 3, 5)])
def test_paged_attention_is_what_torch_gives_for_each_sequence_alone(H: int, G: int, S: int) -> None:
    """The texts are written into pages, in any order, and torch attends to the texts."""
    lengths, table = [2 * S, S + 1, 1], torch.full((3, 4), -1)
    k_pages, v_pages = 9 * randn(8, S, G, 7), 9 * randn(8, S, G, 5)
    free, q, expected = torch.randperm(8).tolist(), randn(3, H, 7), []
    for b, length in enumerate(lengths):
        k, v = randn(length, G, 7), randn(length, G, 5)
        for m, start in enumerate(range(0, length, S)):
            page = int(free.pop())
            table[b, m] = page
            for pages, text in ((k_pages, k), (v_pages, v)):
                part = text[start : start + S]
                pages[page, : len(part)] = part
        heads_first = q[b][:, None], k.transpose(0, 1), v.transpose(0, 1)
        expected.append(F.scaled_dot_product_attention(*heads_first, enable_gqa=True)[:, 0])

    out = solution("paged_attention").paged_attention(q, k_pages, v_pages, table, torch.tensor(lengths))
    close(out, torch.stack(expected))
