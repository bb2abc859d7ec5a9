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


def page_bytes(*, layers: int, S: int, G: int, D: int, size: int) -> float:
    """k and v in the S slots of one page, in every layer and key-value head, with `size` bytes a number."""
    return 2 * layers * S * G * D * size


def pages_needed(*, T: int, S: int) -> float:
    """How many pages of S slots hold T tokens."""
    return math.ceil(T / S)


def slots_wasted(*, T: int, S: int) -> float:
    """The slots without a token in the last page of T tokens."""
    return -T % S


def page_table_bytes(*, B: int, T: int, S: int, size: int) -> float:
    """The table of B sequences of up to T tokens in pages of S slots, with `size` bytes an entry."""
    return B * math.ceil(T / S) * size


def pages_with_shared_prompt(*, n: int, P: int, T: int, S: int) -> float:
    """The pages of n answers of T tokens to a prompt of P tokens, whose full pages are shared."""
    shared = P // S
    return shared + n * (math.ceil((P + T) / S) - shared)


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


def window_pairs(*, T: int, W: int) -> float:
    """How many (query, key) pairs a causal window of W keys allows in T tokens, W <= T; the own position is one of W."""
    return T * W - W * (W - 1) // 2


def window_reach(*, layers: int, W: int) -> float:
    """How many tokens before its own one position can be informed of through layers with a window of W keys."""
    return layers * (W - 1)


def alibi_first_divisor(*, H: int) -> float:
    """1 over the first ALiBi slope of H heads, H a power of two."""
    return float(2 ** (8 / H))


def alibi_horizon(*, H: int) -> float:
    """The distance at which a slope of 1/H takes a weight down to 1 %."""
    return H * math.log(100)


def rope_longest_wave(*, D: int, base: int) -> float:
    """After how many positions the slowest pair of rotary embeddings has made a full turn."""
    return float(2 * math.pi * base ** ((D - 2) / D))


def rope_table_bytes(*, T: int, D: int, size: int) -> float:
    """Tables of cos and sin for T positions, one entry for each pair of D columns, with `size` bytes an entry."""
    return T * D * size


def linear_state_numbers(*, layers: int, H: int, D: int) -> float:
    """What linear attention keeps of a sequence of any length: sums of (D, D) and of D for each layer and head, D = Dv."""
    return layers * H * (D * D + D)


def linear_break_even(*, D: int) -> float:
    """The T where a cache of T keys and values of size D holds as many numbers as sums of (D, D) and D."""
    return (D + 1) / 2


def block_parameters(*, E: int) -> float:
    """A block of width E with an mlp of width 4 E, biases and two norms."""
    return 12 * E * E + 13 * E


def block_token_flops(*, T: int, E: int) -> float:
    """A block of width E with an mlp of width 4 E, for one token that attends to T: products alone."""
    return 24 * E * E + 4 * T * E


def mla_cache_numbers(*, layers: int, L: int, R: int, T: int) -> float:
    """Latent attention keeps L + R numbers of each token in each layer."""
    return layers * (L + R) * T


def mla_saving(*, H: int, D: int, L: int, R: int) -> float:
    """How many times smaller that is than the keys and values of H heads of size D."""
    return 2 * H * D / (L + R)


def mla_parameters(*, E: int, H: int, D: int, L: int, R: int) -> float:
    """q (E, H (D + R)), down (E, L), two times up (L, H D), the rotary key (E, R) and o (H D, E), no biases."""
    return E * H * (D + R) + E * L + 2 * L * H * D + E * R + H * D * E


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
        page_bytes,
        pages_needed,
        slots_wasted,
        page_table_bytes,
        pages_with_shared_prompt,
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
        window_pairs,
        window_reach,
        alibi_first_divisor,
        alibi_horizon,
        rope_longest_wave,
        rope_table_bytes,
        linear_state_numbers,
        linear_break_even,
        block_parameters,
        block_token_flops,
        mla_cache_numbers,
        mla_saving,
        mla_parameters,
    )
}


def needs(name: str) -> frozenset[str]:
    """The parameters of a formula."""
    return frozenset(inspect.signature(FORMULAS[name]).parameters)
