"""The formulas that grade numeric follow-ups, by name. Nothing in a TOML file is ever evaluated.

Sizes: B batch, H heads, T/Tq/Tk lengths, D head size, E = H * D. A multiply and an add are two FLOPs.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping


def score_bytes(*, B: int, H: int, Tq: int, Tk: int, size: int) -> float:
    """Memory of the score matrix (B, H, Tq, Tk) with `size` bytes an entry."""
    return B * H * Tq * Tk * size


def square_score_bytes(*, B: int, H: int, T: int, size: int) -> float:
    """Memory of the score matrix (B, H, T, T) with `size` bytes an entry."""
    return B * H * T * T * size


def attention_flops(*, B: int, H: int, Tq: int, Tk: int, D: int) -> float:
    """q kᵀ and weights v: two products of (Tq, Tk) by D for each sample and head; the softmax is left out."""
    return 4 * B * H * Tq * Tk * D


def fused_parameters(*, inputs: int, outputs: int) -> float:
    """nn.Linear(inputs, 3 * outputs) with its bias."""
    return 3 * outputs * (inputs + 1)


def fused_flops(*, B: int, T: int, inputs: int, outputs: int) -> float:
    """The one product of (B * T, inputs) with (inputs, 3 * outputs)."""
    return 2 * B * T * inputs * 3 * outputs


def fused_rows(*, H: int, G: int, D: int) -> float:
    """The rows of a fused weight with H query heads and G key-value heads."""
    return (H + 2 * G) * D


def mha_parameters(*, E: int) -> float:
    """Four nn.Linear(E, E) with biases."""
    return 4 * (E * E + E)


def wide_head_parameters(*, E: int, H: int, D: int) -> float:
    """q, k and v (E, H * D) and o (H * D, E) with biases, for heads of any size D."""
    return 3 * (E + 1) * H * D + (H * D + 1) * E


def gqa_parameters(*, E: int, H: int, G: int) -> float:
    """q and o (E, E), k and v (E, G * D), D = E / H, no biases: grouped-query attention with G key-value heads."""
    return 2 * E * E + 2 * E * G * (E // H)


def cross_parameters(*, E: int, C: int) -> float:
    """q and o (E, E), k and v (C, E), all with biases."""
    return 2 * (E * E + E) + 2 * (C * E + E)


def projection_flops(*, B: int, T: int, E: int) -> float:
    """The four products of (B * T, E) with (E, E) in multi-head self-attention."""
    return 8 * B * T * E * E


def even_length(*, E: int) -> float:
    """The T where the two (T, T) products, 4 T² E, cost as much as the four projections, 8 T E²."""
    return 2 * E


def kv_cache_bytes(*, layers: int, G: int, D: int, T: int, B: int, size: int) -> float:
    """k and v of every layer, key-value head, position and sample."""
    return 2 * layers * G * D * T * B * size


def rows_without_cache(*, T: int) -> float:
    """The rows that a projection reads in T steps of decoding, if each step projects all tokens so far."""
    return T * (T + 1) // 2


def partial_bytes(*, T: int, P: int, H: int) -> float:
    """out and lse of one query of H heads of size 128 in float32, whatever the length T and the number of parts P."""
    return H * (128 + 1) * 4


def part_share(*, a: int, b: int) -> float:
    """The share of the first of two parts with the lse a and b."""
    return 1 / (1 + math.exp(b - a))


def backward_flops(*, B: int, T: int) -> float:
    """The four products of a backward pass with saved weights: 16 heads of size 64, T queries and keys."""
    return 4 * 2 * B * 16 * T * T * 64


def saved_weight_bytes(*, layers: int, H: int, T: int) -> float:
    """The weights (H, T, T) of every layer in bfloat16."""
    return layers * H * T * T * 2


def causal_tiles(*, n: int) -> float:
    """How many of n by n square tiles a causal mask leaves, the n on the diagonal included."""
    return n * (n + 1) // 2


def causal_pairs(*, Tq: int, Tk: int) -> float:
    """How many (query, key) pairs are allowed when the queries are the last Tq of Tk positions."""
    return Tq * Tk - Tq * (Tq - 1) // 2


def masked_share(*, T: int) -> float:
    """The share of a (T, T) causal score matrix that is masked, in per cent."""
    return 100 * (T - 1) / (2 * T)


def padded_share(*, a: int, b: int, c: int, d: int) -> float:
    """The share of padding, in per cent, in a batch of four sequences padded to the longest."""
    return 100 * (1 - (a + b + c + d) / (4 * max(a, b, c, d)))


def score_deviation(*, D: int) -> float:
    """The standard deviation of q · k for independent standard normal entries."""
    return math.sqrt(D)


def first_weight(*, gap: int) -> float:
    """The larger of two softmax weights whose scores are `gap` apart."""
    return 1 / (1 + math.exp(-gap))


def leaked_weight(*, keys: int, padded: int) -> float:
    """The total weight, in per cent, of the padded keys when all keys have score 0."""
    return 100 * padded / keys


FORMULAS: Mapping[str, Callable[..., float]] = {
    formula.__name__: formula
    for formula in (
        score_bytes,
        square_score_bytes,
        attention_flops,
        fused_parameters,
        fused_flops,
        fused_rows,
        mha_parameters,
        wide_head_parameters,
        gqa_parameters,
        cross_parameters,
        projection_flops,
        even_length,
        kv_cache_bytes,
        rows_without_cache,
        causal_tiles,
        backward_flops,
        saved_weight_bytes,
        partial_bytes,
        part_share,
        causal_pairs,
        masked_share,
        padded_share,
        score_deviation,
        first_weight,
        leaked_weight,
    )
}


def needs(name: str) -> frozenset[str]:
    """The parameters of a formula."""
    return frozenset(inspect.signature(FORMULAS[name]).parameters)
