"""The numbers and facts of the follow-ups, computed another way: with modules, tensors and counting."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attn_kata.interview import content
from attn_kata.interview.formulas import FORMULAS


def parameters(*layers: nn.Module) -> int:
    return sum(value.numel() for layer in layers for value in layer.parameters())


def linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=bias, device="meta")


def scores(B: int, H: int, Tq: int, Tk: int, size: int) -> int:
    dtype = {1: torch.bool, 2: torch.float16, 4: torch.float32}[size]
    made = torch.empty(B, H, Tq, Tk, dtype=dtype, device="meta")
    return made.numel() * made.element_size()


def product(*shapes: tuple[int, ...]) -> int:
    """FLOPs of matrix products (n, m) by (m, k), as torch counts them."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        for *batch, n, m, k in shapes:
            torch.empty(*batch, n, m, device="meta") @ torch.empty(*batch, m, k, device="meta")
    return counter.get_total_flops()


def padding(lengths: list[int]) -> float:
    padded = torch.arange(max(lengths)) >= torch.tensor(lengths)[:, None]  # (4, T)
    return 100 * padded.double().mean().item()


def reach(layers: int, W: int) -> int:
    """Follows the mask from the last position through the layers."""
    first = last = layers * W
    for _ in range(layers):
        first = next(key for key in range(first + 1) if first - key < W)
    return last - first


def pages_of_answers(n, P, T, S):
    """The different pages of n answers: a full page of the prompt is named alike by all, any other by one answer only."""
    return len(
        {(0 if (page + 1) * S <= P else answer, page) for answer in range(1, n + 1) for page in range(-(-(P + T) // S))}
    )


COUNTED = {
    "score_bytes": scores,
    "square_score_bytes": lambda B, H, T, size: scores(B, H, T, T, size),
    "attention_flops": lambda B, H, Tq, Tk, D: product((B, H, Tq, D, Tk), (B, H, Tq, Tk, D)),
    "fused_parameters": lambda inputs, outputs: parameters(linear(inputs, 3 * outputs)),
    "fused_flops": lambda B, T, inputs, outputs: product((B * T, inputs, 3 * outputs)),
    "fused_rows": lambda H, G, D: sum(layer.weight.shape[0] for layer in (linear(8, H * D), *[linear(8, G * D)] * 2)),
    "mha_parameters": lambda E: parameters(*(linear(E, E) for _ in range(4))),
    "wide_head_parameters": lambda E, H, D: parameters(*(linear(E, H * D) for _ in range(3)), linear(H * D, E)),
    "gqa_parameters": lambda E, H, G: parameters(
        *(linear(E, width, bias=False) for width in (E, E, G * (E // H), G * (E // H)))
    ),
    "cross_parameters": lambda E, C: parameters(linear(E, E), linear(E, E), linear(C, E), linear(C, E)),
    "projection_flops": lambda B, T, E: product(*[(B * T, E, E)] * 4),
    "even_length": lambda E: next(
        T for T in range(1, 9 * E) if product((T, E, T), (T, T, E)) >= product(*[(T, E, E)] * 4)
    ),
    "kv_cache_bytes": lambda layers, G, D, T, B, size: layers * scores(2 * B, G, T, D, size),
    "causal_pairs": lambda Tq, Tk: int(torch.ones(Tk, Tk).tril()[-Tq:].sum()),
    "masked_share": lambda T: 100 * torch.ones(T, T).triu(1).mean().item(),
    "padded_share": lambda a, b, c, d: padding([a, b, c, d]),
    "score_deviation": lambda D: torch.randn(40_000, D, generator=torch.manual_seed(0)).mul(
        torch.randn(40_000, D, generator=torch.manual_seed(1))
    ).sum(-1).std().item(),
    "first_weight": lambda gap: torch.tensor([float(gap), 0.0]).softmax(0)[0].item(),
    "leaked_weight": lambda keys, padded: 100 * torch.zeros(keys).softmax(0)[:padded].sum().item(),
    "window_pairs": lambda T, W: int(torch.ones(T, T).tril().triu(1 - W).sum()),
    "window_reach": lambda layers, W: reach(layers, W),
    "alibi_first_divisor": lambda H: torch.logspace(-8 / H, -8, H, base=2)[0].reciprocal().item(),
    "rope_longest_wave": lambda D, base: 2 * math.pi / torch.logspace(0, 2 / D - 1, D // 2, base=base)[-1].item(),
    "rope_table_bytes": lambda T, D, size: 2 * scores(1, 1, T, D // 2, size),
    "linear_state_numbers": lambda layers, H, D: layers * (torch.empty(H, D, D).numel() + torch.empty(H, D).numel()),
    "linear_break_even": lambda D: (torch.empty(D, D).numel() + torch.empty(D).numel()) / torch.empty(2, D).numel(),
    "block_parameters": lambda E: parameters(
        *[linear(E, E)] * 4, linear(E, 4 * E), linear(4 * E, E), *[nn.LayerNorm(E, device="meta")] * 2
    ),
    "block_token_flops": lambda T, E: product(*[(1, E, E)] * 4, (1, E, 4 * E), (1, 4 * E, E), (1, E, T), (1, T, E)),
    "mla_cache_numbers": lambda layers, L, R, T: layers * (torch.empty(T, L).numel() + torch.empty(T, R).numel()),
    "mla_saving": lambda H, D, L, R: torch.empty(2, H, D).numel() / torch.empty(L + R).numel(),
    "mla_parameters": lambda E, H, D, L, R: parameters(
        linear(E, H * (D + R), bias=False),
        linear(E, L, bias=False),
        *[linear(L, H * D, bias=False)] * 2,
        linear(E, R, bias=False),
        linear(H * D, E, bias=False),
    ),
    "alibi_horizon": lambda H: (torch.arange(0, 2000, 0.01).div(-H).exp() > 0.01).sum().item() / 100,
    "page_bytes": lambda layers, S, G, D, size: sum(scores(1, S, G, D, size) for _ in ("k", "v")) * layers,
    "pages_needed": lambda T, S: len(torch.empty(T).split(S)),
    "slots_wasted": lambda T, S: sum(S - len(page) for page in torch.empty(T).split(S)),
    "page_table_bytes": lambda B, T, S, size: B * len(torch.empty(T).split(S)) * size,
    "pages_with_shared_prompt": lambda n, P, T, S: pages_of_answers(n, P, T, S),
    "rows_without_cache": lambda T: sum(range(1, T + 1)),
    "partial_bytes": lambda T, P, H: sum(torch.empty(H, *width).numel() * 4 for width in ((128,), ())),
    "part_share": lambda a, b: torch.tensor([float(a), float(b)]).softmax(0)[0].item(),
    "backward_flops": lambda B, T: product(*[(B, 16, T, 64, T)] * 2, *[(B, 16, T, T, 64)] * 2),
    "saved_weight_bytes": lambda layers, H, T: layers * scores(1, H, T, T, 2),
    "causal_tiles": lambda n: int(torch.ones(n, n).tril().sum()),
}  # fmt: skip


def test_every_formula_is_counted():
    assert COUNTED.keys() == FORMULAS.keys()


@pytest.mark.parametrize("name", [name for name in COUNTED if name != "even_length"])
def test_a_formula_gives_what_is_counted(name):
    asked = [
        one
        for path in content.resources.katas_folder().glob("*/interview.toml")
        for one in content.of_kata(path.parent.name).follow_ups
        if one.kind == "numeric" and one.formula == name
    ]
    assert asked
    for one in asked:
        for first in (min, max):
            numbers = {key: first(values) for key, values in one.draw.items()} | dict(one.fixed)
            assert COUNTED[name](**numbers) == pytest.approx(FORMULAS[name](**numbers), rel=0.01)


def test_the_products_cost_as_much_as_the_projections_at_twice_the_width():
    assert COUNTED["even_length"](E=16) == FORMULAS["even_length"](E=16)


def stated(slug: str, begins: str) -> float:
    """The number that a follow-up without a formula states."""
    found = [one for one in content.of_kata(slug).follow_ups if one.ask.startswith(begins)]
    assert len(found) == 1
    return found[0].answer


def last_exponent_above_zero() -> float:
    exponents = torch.arange(-110, -90, 0.25)
    return exponents[exponents.exp() > 0].min().item()


@pytest.mark.parametrize(
    ("slug", "begins", "computed"),
    [
        ("softmax", "What is the middle", lambda: torch.tensor([0.0, 2, 0]).softmax(0)[1].item()),
        ("softmax", "The smallest number", lambda: round(last_exponent_above_zero())),
        ("split_heads", "E = 768", lambda: torch.arange(768).view(12, 64)[5, 0].item()),
        (
            "split_heads",
            "x is contiguous",
            lambda: torch.empty(8, 1024, 768, device="meta").view(8, 1024, 12, 64).transpose(1, 2).stride(2),
        ),
        ("heads_concat", "How many matrix products", lambda: 3 * 12),
        ("self_attention", "How many parameters", lambda: parameters(*(linear(512, to, bias=False) for to in (64, 64, 128)))),
        (
            "additive_attention",
            "How many parameters",
            lambda: parameters(linear(512, 256, bias=False), linear(1024, 256, bias=False), linear(256, 1, bias=False)),
        ),
        ("attention_classifier", "Before training", lambda: F.cross_entropy(torch.zeros(1, 10), torch.tensor([0])).item()),
        ("attention_dropout", "p = 0.2", lambda: (0.4 * F.dropout(torch.ones(99), 0.2)).max().item()),
        (
            "attention_dropout",
            "A query has 4 keys",
            lambda: 100 * sum(not any(kept) for kept in itertools.product((0, 1), repeat=4)) / 2**4,
        ),
    ],
)  # fmt: skip
def test_a_stated_number_is_what_is_computed(slug, begins, computed):
    assert stated(slug, begins) == pytest.approx(computed(), rel=0.005)


def test_every_number_without_a_formula_is_computed_here():
    mark = next(one for one in test_a_stated_number_is_what_is_computed.pytestmark if one.name == "parametrize")
    covered = [(slug, begins) for slug, begins, _ in mark.args[1]]
    for path in content.resources.katas_folder().glob("*/interview.toml"):
        slug = path.parent.name
        for one in content.of_kata(slug).follow_ups:
            if one.kind == "numeric" and not one.formula:
                assert any(slug == kata and one.ask.startswith(begins) for kata, begins in covered), one.ask


# What the explanations state ------------------------------------------------------------------------------------------


def test_joining_heads():
    out = torch.randn(2, 3, 5, 4)  # (B, H, T, D)
    joined = out.transpose(1, 2).reshape(2, 5, 12)

    assert torch.equal(joined, torch.cat(list(out.unbind(1)), -1))
    assert not torch.equal(joined, out.reshape(2, 5, 12))
    with pytest.raises(RuntimeError):
        out.transpose(1, 2).view(2, 5, 12)


def test_the_output_projection_adds_a_matrix_of_each_head():
    heads, weight = torch.randn(3, 5, 4), torch.randn(12, 6)  # (H, T, D), (H * D, E)
    added = sum(head @ part for head, part in zip(heads, weight.split(4), strict=True))

    assert torch.allclose(torch.cat(list(heads), -1) @ weight, added, atol=1e-5)


def test_small_shares_of_a_softmax():
    assert torch.tensor([0.0, 2, 0]).softmax(0)[0].item() == pytest.approx(0.107, abs=5e-4)
    assert torch.tensor([0.0, 20, 0]).softmax(0)[1].item() > 0.999_999
    assert math.log(1 + 9 / math.e) == pytest.approx(1.46, abs=5e-3)
    assert math.log(torch.finfo(torch.float32).max) == pytest.approx(88.7, abs=0.1)
    assert math.log(torch.finfo(torch.float16).max) == pytest.approx(11, abs=0.1)


def test_rows_that_are_masked_throughout():
    q, v = torch.randn(1, 2, 4), torch.randn(1, 3, 4, requires_grad=True)
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    smallest = torch.full((3,), torch.finfo(torch.float16).min, dtype=torch.float16)

    assert F.scaled_dot_product_attention(q, torch.randn(1, 3, 4), v, attn_mask=nothing).abs().max() == 0
    assert torch.full((3,), -math.inf).softmax(0).isnan().all()
    assert (smallest + smallest).softmax(0).isnan().all()
    (torch.full((1, 2, 3), -math.inf).softmax(-1) @ v).nan_to_num(0.0).sum().backward()
    assert v.grad.isnan().all()
    scores = torch.randn(2, 3, requires_grad=True)
    scores.masked_fill(~nothing, -math.inf).softmax(-1).nan_to_num(0.0).sum().backward()
    assert scores.grad.abs().max() == 0


def test_a_fill_that_does_not_fit_into_float16_raises():
    hidden = torch.ones(2, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="overflow"):
        torch.zeros(2, dtype=torch.float16).masked_fill(hidden, -1e9)
    assert torch.zeros(2, dtype=torch.bfloat16).masked_fill(hidden, -1e9).isfinite().all()


def test_a_chunk_of_a_prompt_has_the_last_rows_of_a_causal_mask():
    right = torch.ones(2048, 2048).tril()[-512:]
    texts = next(
        one for one in content.of_kata("causal_mask").follow_ups if one.ask.startswith("A long prompt")
    ).options
    masks = [eval(text, {"torch": torch}) for text in texts]

    assert [torch.equal(mask, right) for mask in masks] == [True, False, False, False]
