"""Results in parts, opaque parts that come back, what a call costs, and autograd that is off: as hidden tests ask for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from attn_kata.grading.hidden_tests import hidden_test
from attn_kata.grading.local import local_handle
from attn_kata.properties import Opaque, PropertyFailed, Sizes, assert_close, randn, standard
from attn_kata.properties.failures import NoAnswer
from attn_kata.properties.handle import Handle

SOURCE = """
import torch

def split(x):
    return x.sum(-1), (2 * x).view(-1)

def remember(x, memory=None):
    (seen,) = (None,) if memory is None else memory
    seen = x if seen is None else torch.cat([seen, x], dim=1)
    return seen.sum(1), [seen]

def strange(x):
    return x, {"x": x}

def wasteful(x):
    table = x[:, None, :] * x[None, :, :].expand(len(x), -1, -1)
    table.add_(1)
    return (x @ x.T).sum() + table[0].sum()
"""
RETURNS = {"split": ("sums", "twice"), "remember": ("total", "opaque memory"), "strange": ("x", "opaque saved")}


@pytest.fixture
def attempt(tmp_path: Path) -> Handle:
    path = tmp_path / "attempt.py"
    path.write_text(SOURCE)
    return local_handle(path, RETURNS)


def test_a_result_in_parts_is_a_tuple_of_tensors_and_each_part_can_be_differentiated(attempt: Handle) -> None:
    x = randn(2, 3)

    sums, twice = attempt.split(x)
    result = attempt.split.run(x, cotangent={"twice": torch.ones(6)})

    assert_close(sums, x.sum(-1), atol=1e-9)
    assert_close(twice, 2 * x.flatten(), atol=1e-9)
    assert list(result.tensors) == ["sums", "twice"]
    assert_close(result.input_gradients[0], torch.full((2, 3), 2.0), atol=1e-9)


def test_an_opaque_part_comes_back_whole_or_cut_as_a_caller_would_cut_it(attempt: Handle) -> None:
    x, y = randn(2, 3), randn(2, 1)

    _, memory = attempt.remember(x)
    whole, _ = attempt.remember(y, memory)
    first, _ = attempt.remember(y, memory.prefix(2, dim=1).index([1, 0], dim=0))

    assert isinstance(memory, Opaque)
    assert (memory.kind, memory.items) == ("list", (((2, 3), torch.float64),))
    assert_close(whole, x.sum(1) + y[:, 0], atol=1e-9)
    assert_close(first, x[:, :2].sum(1)[[1, 0]] + y[:, 0], atol=1e-9)
    with pytest.raises(NoAnswer, match=r"returned tensors of shapes \(2, 3\), and prefix\(1, 9\) fails on them"):
        attempt.remember(y, memory.prefix(9, dim=1))


def test_a_result_that_has_not_the_parts_of_the_contract_is_told(tmp_path: Path, attempt: Handle) -> None:
    path = tmp_path / "other.py"
    path.write_text(
        "def split(x):\n    return x\n\ndef remember(x):\n    return x, x, x\n\ndef strange(x):\n    return None, x\n"
    )
    other = local_handle(path, RETURNS)

    _, saved = attempt.strange(randn(2, 3))

    assert (saved.kind, saved.items) == ("a dict of 1", ())
    for name, said in (
        ("split", r"returned one tensor; the contract asks for \(sums, twice\)"),
        ("remember", r"returned a tuple of 3; the contract asks for \(total, memory\)"),
        ("strange", "returned None as x; the contract asks for one torch.Tensor"),
    ):
        with pytest.raises(NoAnswer, match=said):
            getattr(other, name)(randn(2, 3))


def test_the_cost_of_a_call_counts_new_storage_and_multiplications(attempt: Handle) -> None:
    cost = attempt.wasteful.run(randn(4, 3), measure=True).cost

    # 4 * 4 * 3 by the product, 4 * 4 by the matrix product, and the two sums with their sum
    assert (cost.made, cost.largest, cost.multiplied) == (48 + 16 + 3, 48, 48 + 48)


LAYERS = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way, self.one, self.two = way, nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        one, two = self.one, self.two
        if self.way == "layers":
            return one(x) + two(x)
        if self.way == "side by side":
            weights, biases = torch.cat([one.weight, two.weight]), torch.cat([one.bias, two.bias])
            return sum(nn.functional.linear(x, weights, biases).chunk(2, dim=-1))
        if self.way == "slices":
            parts = [(layer, slice(at, at + 2)) for layer in (one, two) for at in (0, 2, 4)]
            made = [x @ layer.weight[rows].t() + layer.bias[rows] for layer, rows in parts]
            return torch.cat(made[:3], -1) + torch.cat(made[3:], -1)
        if self.way == "columns":
            return (one.weight @ x.mT + one.bias[:, None]).mT + two(x)
        if self.way == "batched":
            return torch.bmm(x, one.weight.t().expand(len(x), -1, -1)) + one.bias + two(x)
        if self.way == "elementwise":
            return sum((layer.weight * x[:, :, None]).sum(-1) + layer.bias for layer in (one, two))
        kept = one.weight.new_zeros(x.shape)  # of the dtype of a weight, and no weight
        kept[:] = x
        similar = torch.ones_like(one.weight)
        return one(kept) + two(kept) + 0 * (kept @ kept.mT @ kept @ similar)
"""


@pytest.mark.parametrize(
    ("way", "products"),
    [
        ("layers", 2),
        ("side by side", 1),
        ("slices", 6),
        ("columns", 2),
        ("batched", 2),
        ("elementwise", 2),
        ("kept", 2),
    ],
)
def test_the_rows_that_are_multiplied_with_a_weight_are_counted_however_the_layer_is_written(
    tmp_path: Path, way: str, products: int
) -> None:
    path = tmp_path / "layers.py"
    path.write_text(LAYERS)
    layer = local_handle(path).Layer(way)

    cost = layer.run(randn(2, 5, 6).float(), measure=True).cost

    assert cost.rows == products * 2 * 5


def test_measuring_imports_nothing_more(ready: Any, tmp_path: Path) -> None:
    code = (
        "import sys, torch; from attn_kata.attempt.meter import Meter; before = set(sys.modules)\n"
        "with Meter([]): torch.ones(3, 3) @ torch.ones(3, 3)\n"
        "print(len(set(sys.modules) - before))"
    )
    ran = ready.run_with_torch(code, cwd=tmp_path)

    assert int(ran.stdout) < 20  # torch._dynamo and what it brings are 800


def test_standard_properties_look_at_every_part(tmp_path: Path, attempt: Handle) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("def split(x):\n    return x.sum(-1), (2 * x).float().reshape(-1)\n")
    asked = standard.function("split", lambda sizes: [(randn(2, 3),)], inputs="x")

    for name, said in (
        ("output_dtype", "inputs of float64 give as twice a tensor of float32"),
        ("float64_throughout", r"twice\[\d\] is"),
        ("non_contiguous_inputs", "not compatible"),
    ):
        made = hidden_test(f"test_{name}", getattr(standard, name)(asked, cases=[Sizes(B=2)]))
        wrong = attempt if name == "non_contiguous_inputs" else local_handle(path, RETURNS)
        with pytest.raises(PropertyFailed, match=said):
            made.run(0, wrong, attempt, seed=0)
