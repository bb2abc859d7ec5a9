"""Every kata's reference against what torch computes itself, at sizes drawn from a seed: code that none of ours shares.

Kernels of attention, `nn.MultiheadAttention`, an encoder layer, `flex_attention`, complex numbers, autograd. A failure names
its seed, and the same seed draws the same sizes.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import flex_attention

from attn_kata import catalog
from attn_kata.grading.local import load_namespace

SEEDS = (0, 1, 2)
F64 = torch.float64
Check = Callable[[ModuleType, random.Random], None]
CHECKS: dict[str, Check] = {}


def kata(check: Check) -> Check:
    """Of a function called as the kata is: it gets the reference's namespace, and what draws the sizes."""
    CHECKS[check.__name__] = check
    return check


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("slug", catalog.slugs())
def test_the_reference_is_what_torch_computes(slug: str, seed: int) -> None:
    torch.manual_seed(seed)
    CHECKS[slug](load_namespace(catalog.find(slug).solution), random.Random(seed))


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=F64)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-9, rtol=1e-9)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, **more: Any) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **more)


def heads(layer: nn.Linear, x: Tensor, count: int) -> Tensor:
    """(B, T, count * D) → (B, count, T, D)."""
    return layer(x).unflatten(-1, (count, -1)).transpose(1, 2)


def merged(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


def flags(*shape: int) -> Tensor:
    """True or False, with a True in every row."""
    drawn = torch.rand(*shape) < 0.5
    return drawn | (torch.arange(shape[-1]) == int(torch.randint(shape[-1], ())))


def qkv(draw: random.Random, *, more_keys: bool = False, D: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv); with `more_keys` Tk is at least Tq."""
    B, H, Tq, Dv = (draw.randint(1, 6) for _ in range(4))
    Tk = Tq + draw.randint(0, 4) if more_keys else draw.randint(1, 9)
    D = D or draw.randint(1, 7)
    return randn(B, H, Tq, D), randn(B, H, Tk, D), randn(B, H, Tk, Dv)


def torchs_module(ours: nn.Module, E: int, H: int, **more: Any) -> nn.MultiheadAttention:
    """`nn.MultiheadAttention` with the weights of q_proj, k_proj, v_proj and o_proj."""
    theirs = nn.MultiheadAttention(E, H, batch_first=True, dtype=F64, **more)
    fused = [ours.get_submodule(name) for name in ("q_proj", "k_proj", "v_proj")]
    if theirs.in_proj_weight is None:
        for name, layer in zip("qkv", fused, strict=True):
            getattr(theirs, f"{name}_proj_weight").data = layer.weight.data
    else:
        theirs.in_proj_weight.data = torch.cat([layer.weight.data for layer in fused])
    theirs.in_proj_bias.data = torch.cat([layer.bias.data for layer in fused])
    theirs.out_proj.load_state_dict(ours.get_submodule("o_proj").state_dict())
    return theirs


def turned(x: Tensor, angles: Tensor) -> Tensor:
    """Columns 2i and 2i + 1 as one complex number, turned by the angle of pair i."""
    return torch.view_as_real(
        torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * torch.polar(torch.ones_like(angles), angles)
    ).flatten(-2)


def angles(positions: Tensor, D: int) -> Tensor:
    return positions.double()[..., None] * 10000 ** (-torch.arange(0, D, 2, dtype=F64) / D)


# The first set


@kata
def sdpa(ours: ModuleType, draw: random.Random) -> None:
    given = qkv(draw)
    close(ours.scaled_dot_product_attention(*given), attend(*given))


@kata
def fused_qkv(ours: ModuleType, draw: random.Random) -> None:
    inside, outside = draw.randint(1, 9), draw.randint(1, 9)
    module = ours.FusedQKVSelfAttention(inside, outside).double()
    x = randn(draw.randint(1, 4), draw.randint(1, 8), inside)
    parts = F.linear(x, module.qkv_proj.weight, module.qkv_proj.bias).split(outside, -1)
    close(module(x), attend(*parts))


@kata
def padding_mask(ours: ModuleType, draw: random.Random) -> None:
    q, k, v = qkv(draw)
    lengths = torch.tensor([draw.randint(1, k.shape[2]) for _ in k])
    sequences = nn.utils.rnn.pad_sequence([torch.ones(int(n)) for n in lengths], batch_first=True)
    keep = F.pad(sequences, (0, k.shape[2] - sequences.shape[1])).bool()

    assert torch.equal(ours.padding_mask(lengths, k.shape[2]), keep)
    close(ours.padded_attention(q, k, v, keep), attend(q, k, v, keep[:, None, None]))


@kata
def causal_mask(ours: ModuleType, draw: random.Random) -> None:
    from torch.nn.attention.bias import (
        causal_lower_right,
    )  # it brings in torch's compiler, which takes as long as torch

    q, k, v = qkv(draw, more_keys=True)
    Tq, Tk = q.shape[2], k.shape[2]

    close(ours.causal_attention(q, k, v), attend(q, k, v, causal_lower_right(Tq, Tk)))
    assert torch.equal(ours.causal_mask(Tq, Tk), torch.ones(Tq, Tk).tril(Tk - Tq).bool())


@kata
def mha(ours: ModuleType, draw: random.Random) -> None:
    H, T, B = draw.randint(1, 4), draw.randint(1, 7), draw.randint(1, 3)
    E = H * draw.randint(1, 5)
    module, x, mask = ours.MultiHeadAttention(E, H).double(), randn(B, T, E), flags(B * H, T, T)
    theirs = torchs_module(module, E, H)

    close(module(x), theirs(x, x, x)[0])
    close(module(x, mask.unflatten(0, (B, H))), theirs(x, x, x, attn_mask=~mask)[0])


@kata
def cross_attention(ours: ModuleType, draw: random.Random) -> None:
    H, inside = draw.randint(1, 4), draw.randint(1, 9)
    E = H * draw.randint(1, 5)
    module = ours.CrossAttention(E, inside, H).double()
    x, context = randn(3, draw.randint(1, 7), E), randn(3, draw.randint(1, 7), inside)
    keep = flags(3, context.shape[1])
    theirs = torchs_module(module, E, H, kdim=inside, vdim=inside)

    close(module(x, context, keep), theirs(x, context, context, key_padding_mask=~keep)[0])


# The second set


@kata
def softmax(ours: ModuleType, draw: random.Random) -> None:
    x, dim = randn(*(draw.randint(1, 5) for _ in range(3))) * 30, draw.randint(-3, 2)
    close(ours.softmax(x, dim), torch.softmax(x, dim))


@kata
def self_attention(ours: ModuleType, draw: random.Random) -> None:
    sizes = [draw.randint(1, 8) for _ in range(3)]
    module, x = ours.SelfAttention(*sizes).double(), randn(2, draw.randint(1, 7), sizes[0])
    close(module(x), attend(*(F.linear(x, layer.weight) for layer in (module.q_proj, module.k_proj, module.v_proj))))


@kata
def split_heads(ours: ModuleType, draw: random.Random) -> None:
    H, D, T = (draw.randint(1, 5) for _ in range(3))
    x = randn(2, T, H * D)
    split = torch.stack(x.chunk(H, dim=-1), dim=1)

    close(ours.split_heads(x, H), split)
    close(ours.merge_heads(split), torch.cat(split.unbind(1), dim=-1))


@kata
def attention_dropout(ours: ModuleType, draw: random.Random) -> None:
    q, k, v = qkv(draw)
    eye = torch.eye(k.shape[2], dtype=F64).expand(*k.shape[:2], -1, -1)  # values that show the weights
    p = 0.3
    weights = attend(q, k, eye)
    dropped = ours.attention_with_dropout(q, k, eye, p, True)

    close(ours.attention_with_dropout(q, k, v, p, False), attend(q, k, v))
    # What is kept is scaled as `F.dropout` scales it; which ones are kept is drawn.
    close(dropped, torch.where(dropped == 0, 0.0, weights / (1 - p)))


@kata
def heads_concat(ours: ModuleType, draw: random.Random) -> None:
    inside, D, Dv, H = (draw.randint(1, 6) for _ in range(4))
    module, x = ours.MultiHeadAttentionWrapper(inside, D, Dv, H).double(), randn(2, draw.randint(1, 7), inside)
    parts = [
        torch.stack([F.linear(x, getattr(head, name).weight) for head in module.heads], 1)
        for name in ("q_proj", "k_proj", "v_proj")
    ]
    close(module(x), merged(attend(*parts)))


@kata
def combined_mask(ours: ModuleType, draw: random.Random) -> None:
    q, k, v = qkv(draw)
    keep, causal = torch.rand(k.shape[0], k.shape[2]) < 0.6, torch.rand(q.shape[2], k.shape[2]) < 0.6
    mask = ours.combine_masks(keep, causal)
    float_mask = torch.zeros(k.shape[0], 1, q.shape[2], k.shape[2], dtype=F64)
    float_mask.masked_fill_(~keep[:, None, None], -torch.inf).masked_fill_(~causal, -torch.inf)

    assert torch.equal(mask, float_mask == 0)
    close(ours.masked_attention(q, k, v, mask), attend(q, k, v, mask))  # an empty row gets 0 of torch too


@kata
def additive_attention(ours: ModuleType, draw: random.Random) -> None:
    sizes = [draw.randint(1, 6) for _ in range(3)]
    module = ours.AdditiveAttention(*sizes).double()
    query, keys, values, keep = _of_the_rnns(draw, sizes[0], sizes[1])
    both = torch.cat([module.q_proj.weight, module.k_proj.weight], 1)  # Bahdanau's one matrix for (query; key)
    pairs = torch.cat(
        [query[:, :, None].expand(-1, -1, keys.shape[1], -1), keys[:, None].expand(-1, query.shape[1], -1, -1)], -1
    )
    scores = F.linear(torch.tanh(F.linear(pairs, both)), module.score_proj.weight)[..., 0]

    close(module(query, keys, values), torch.softmax(scores, -1) @ values)
    masked = scores.masked_fill(~keep[:, None], -torch.inf)
    close(module(query, keys, values, keep), torch.softmax(masked, -1) @ values)


@kata
def multiplicative_attention(ours: ModuleType, draw: random.Random) -> None:
    sizes = [draw.randint(1, 6) for _ in range(2)]
    module = ours.MultiplicativeAttention(*sizes).double()
    query, keys, values, keep = _of_the_rnns(draw, *sizes)
    projected = F.linear(keys, module.k_proj.weight)

    close(module(query, keys, values), attend(query, projected, values, scale=1.0))
    close(module(query, keys, values, keep), attend(query, projected, values, keep[:, None], scale=1.0))


def _of_the_rnns(draw: random.Random, query_dim: int, key_dim: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    Tq, Tk, Dv = (draw.randint(1, 7) for _ in range(3))
    return randn(2, Tq, query_dim), randn(2, Tk, key_dim), randn(2, Tk, Dv), flags(2, Tk)


@kata
def attention_classifier(ours: ModuleType, draw: random.Random) -> None:
    H, classes, T = draw.randint(1, 4), draw.randint(1, 5), draw.randint(1, 7)
    E = H * draw.randint(1, 5)
    module = ours.AttentionClassifier(11, E, H, classes).double()
    ids, keep = torch.randint(11, (3, T)), flags(3, T)
    x = F.embedding(ids, module.embedding.weight)
    out = torchs_module(module.attention, E, H)(x, x, x, key_padding_mask=~keep)[0]
    means = torch.stack([row[real].mean(0) for row, real in zip(out, keep, strict=True)])

    close(module(ids, keep), F.linear(means, module.classifier.weight, module.classifier.bias))


# The third set


@kata
def qkv_attention(ours: ModuleType, draw: random.Random) -> None:
    H, Tq, Tk = (draw.randint(1, 6) for _ in range(3))
    E = H * draw.randint(1, 5)
    module, mask = ours.MultiHeadAttention(E, H).double(), flags(Tq, Tk)
    query, key, value = randn(2, Tq, E), randn(2, Tk, E), randn(2, Tk, E)
    out, weights = module(query, key, value, mask)
    right, right_weights = torchs_module(module, E, H)(query, key, value, attn_mask=~mask, average_attn_weights=False)

    close(out, right)
    close(weights, right_weights)


@kata
def gqa(ours: ModuleType, draw: random.Random) -> None:
    G, each, D, T = (draw.randint(1, 4) for _ in range(4))
    H = G * each
    module, x, mask = ours.GroupedQueryAttention(H * D, H, G).double(), randn(2, T, H * D), flags(2, H, T, T)
    parts = heads(module.q_proj, x, H), heads(module.k_proj, x, G), heads(module.v_proj, x, G)

    close(module(x), module.o_proj(merged(attend(*parts, enable_gqa=True))))
    close(module(x, mask), module.o_proj(merged(attend(*parts, mask, enable_gqa=True))))


@kata
def kv_cache(ours: ModuleType, draw: random.Random) -> None:
    H, D, T = (draw.randint(1, 6) for _ in range(3))
    module, x = ours.CachedSelfAttention(H * D, H).double(), randn(2, T, H * D)
    q, k, v = (heads(layer, x, H) for layer in (module.q_proj, module.k_proj, module.v_proj))
    outs, cache = [], None
    for chunk in x.split(draw.randint(1, 3), dim=1):
        out, cache = module(chunk, cache)
        outs.append(out)

    close(torch.cat(outs, 1), module.o_proj(merged(attend(q, k, v, is_causal=True))))


@kata
def rope(ours: ModuleType, draw: random.Random) -> None:
    q, k, v = qkv(draw, more_keys=True, D=2 * draw.randint(1, 5))
    k, v = k[:, :, : q.shape[2]], v[:, :, : q.shape[2]]
    positions = torch.randint(1000, (len(q), q.shape[2]))
    by = angles(positions, q.shape[-1])[:, None]

    # The reference makes its angles in float32.
    torch.testing.assert_close(ours.apply_rope(q, positions), turned(q, by), atol=1e-3, rtol=0)
    expected = attend(turned(q, by), turned(k, by), v)
    torch.testing.assert_close(ours.rope_attention(q, k, v, positions), expected, atol=1e-2, rtol=0)


@kata
def alibi(ours: ModuleType, draw: random.Random) -> None:
    q, k, v = qkv(draw, more_keys=True)
    H, offset = q.shape[1], k.shape[2] - q.shape[2]
    power = 1 << (H.bit_length() - 1)
    slopes = [2.0 ** (-8 * (h + 1) / power) for h in range(power)]
    slopes += [2.0 ** (-8 * (h + 1) / (2 * power)) for h in range(0, 2 * (H - power), 2)]
    slope = torch.tensor(slopes, dtype=F64)

    def score(each: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return torch.where(j <= i + offset, each - slope[h] * (i + offset - j), -torch.inf)

    close(ours.alibi_attention(q, k, v), _flex(q, k, v, score))


@kata
def sliding_window(ours: ModuleType, draw: random.Random) -> None:
    q, k, v = qkv(draw, more_keys=True)
    window, sinks, offset = draw.randint(1, 6), draw.randint(0, 3), k.shape[2] - q.shape[2]

    def score(each: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        behind = i + offset - j
        return torch.where((behind >= 0) & ((behind < window) | (j < sinks)), each, -torch.inf)

    close(ours.sliding_window_attention(q, k, v, window, sinks), _flex(q, k, v, score))


def _flex(q: Tensor, k: Tensor, v: Tensor, score: Callable[..., Tensor]) -> Tensor:
    """`flex_attention`, not compiled: it runs on a CPU, and torch warns once that it is slow."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
        return flex_attention(q, k, v, score_mod=score)


@kata
def online_softmax(ours: ModuleType, draw: random.Random) -> None:
    q, k, v = qkv(draw)
    k, v = (torch.cat([part, randn(*part.shape)], 2) for part in (k, v))
    mask, cut = torch.rand(q.shape[2], k.shape[2]) < 0.6, draw.randint(1, k.shape[2] - 1)
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
    parts = [
        ours.partial_attention(q, k[:, :, part], v[:, :, part], mask[:, part])
        for part in (slice(cut), slice(cut, None))
    ]

    for out, lse in (ours.partial_attention(q, k, v, mask), ours.merge_partials(*parts[1], *parts[0])):
        close(out, attend(q, k, v, mask))
        close(lse, scores.logsumexp(-1))


@kata
def flash_attention(ours: ModuleType, draw: random.Random) -> None:
    for causal in (False, True):
        q, k, v = qkv(draw, more_keys=causal)
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
        mask = mask.tril(k.shape[2] - q.shape[2]) if causal else mask
        out, lse = ours.flash_attention(q, k, v, draw.randint(1, 5), draw.randint(1, 5), causal)

        close(out, attend(q, k, v, mask))
        close(lse, (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf).logsumexp(-1))


@kata
def attention_backward(ours: ModuleType, draw: random.Random) -> None:
    q, k, v = qkv(draw)
    grad_out = randn(*q.shape[:3], v.shape[-1])
    for mask in (None, flags(q.shape[0], 1, q.shape[2], k.shape[2])):
        leaves = [part.clone().requires_grad_() for part in (q, k, v)]
        right = torch.autograd.grad(attend(*leaves, mask), leaves, grad_out)
        out, saved = ours.attention_forward(q, k, v, mask)

        close(out, attend(q, k, v, mask))
        for got, wanted in zip(ours.attention_backward(grad_out, saved), right, strict=True):
            close(got, wanted)


@kata
def linear_attention(ours: ModuleType, draw: random.Random) -> None:
    for causal in (False, True):
        q, k, v = qkv(draw, more_keys=True)
        k, v = (part[:, :, : q.shape[2]] for part in (k, v)) if causal else (k, v)
        weights = torch.einsum("bhid,bhjd->bhij", F.elu(q) + 1, F.elu(k) + 1)
        weights = weights.tril() if causal else weights

        close(ours.linear_attention(q, k, v, causal), F.normalize(weights, p=1, dim=-1) @ v)


@kata
def mla(ours: ModuleType, draw: random.Random) -> None:
    E, H, D, L, T = (draw.randint(1, 6) for _ in range(5))
    R = 2 * draw.randint(1, 3)
    module, x = ours.LatentAttention(E, H, D, L, R).double(), randn(2, T, E)
    by = angles(torch.arange(T), R)
    q, latent = heads(module.q_proj, x, H), module.kv_down(x)
    q = torch.cat([q[..., :D], turned(q[..., D:], by)], -1)
    k = torch.cat([heads(module.k_up, latent, H), turned(module.k_rope(x)[:, None], by).expand(-1, H, -1, -1)], -1)
    ready = attend(q, k, heads(module.v_up, latent, H), is_causal=True)

    torch.testing.assert_close(module(x), module.o_proj(merged(ready)), atol=1e-5, rtol=0)  # angles in float32


@kata
def transformer_block(ours: ModuleType, draw: random.Random) -> None:
    H, M, T = (draw.randint(1, 6) for _ in range(3))
    E = H * draw.randint(2, 5)
    block = ours.TransformerBlock(E, H, M).double()
    layer = nn.TransformerEncoderLayer(E, H, M, 0.0, F.gelu, batch_first=True, norm_first=True).double()
    layer.self_attn = torchs_module(block.attention, E, H)
    for theirs, name in {"linear1": "mlp_in", "linear2": "mlp_out", "norm1": "norm1", "norm2": "norm2"}.items():
        layer.get_submodule(theirs).load_state_dict(block.get_submodule(name).state_dict())
    x = randn(2, T, E)
    later = torch.full((T, T), -torch.inf, dtype=F64).triu(1)

    close(block(x), layer(x, src_mask=later, is_causal=True))


@kata
def paged_attention(ours: ModuleType, draw: random.Random) -> None:
    """The tokens are written into pages, in any order, and torch attends to the tokens of each sequence alone."""
    G, each, S, D, Dv = (draw.randint(1, 4) for _ in range(5))
    lengths = [draw.randint(1, 3 * S) for _ in range(3)]
    q, table = randn(3, G * each, D), torch.full((3, 4), -1)
    k_pages, v_pages = 9 * randn(12, S, G, D), 9 * randn(12, S, G, Dv)  # what no sequence uses is large
    free, expected = draw.sample(range(12), 12), []
    for b, length in enumerate(lengths):
        k, v = randn(length, G, D), randn(length, G, Dv)
        for place, (some_k, some_v) in enumerate(zip(k.split(S), v.split(S), strict=True)):
            page = table[b, place] = free.pop()
            k_pages[page, : len(some_k)], v_pages[page, : len(some_v)] = some_k, some_v
        parts = q[b][:, None], k.transpose(0, 1), v.transpose(0, 1)
        expected.append(attend(*parts, enable_gqa=True)[:, 0])

    close(ours.paged_attention(q, k_pages, v_pages, table, torch.tensor(lengths)), torch.stack(expected))
