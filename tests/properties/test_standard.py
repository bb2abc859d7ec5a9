"""Standard properties, asked of attempts that keep and that break them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from attn_kata.grading.hidden_tests import hidden_test
from attn_kata.grading.local import local_handle
from attn_kata.properties import FORBIDDEN_SOFTMAXES, PropertyFailed, Sizes, build_pair, randn, standard
from attn_kata.properties.handle import Handle

SIZES = Sizes(B=2, T=3, E=4)

RIGHT = """
import torch

def double(x, keep=None):
    return 2 * x if keep is None else 2 * x * keep

class Doubling(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
        return 2 * x * self.weight
"""

function = standard.function("double", lambda sizes: [(randn(sizes.B, sizes.T, sizes.E),)], inputs="x")
module = standard.module(
    lambda attempt, reference, sizes, dtype: build_pair(attempt, reference, "Doubling", sizes.E, dtype=dtype),
    lambda sizes: [(randn(sizes.B, sizes.T, sizes.E),)],
)

BROKEN = {  # a property: what an attempt's functions do instead, and what is said
    "output_dtype": ("return (2 * x).float()", "inputs of float64 give an output of float32"),
    "float32": ("return (2 * x.half()).to(x.dtype)", "expected"),
    "half_precision": ("return (2 * x.double()).float()", "inputs of float16 give an output of float32"),
    "float64_throughout": ("return (2 * x.float()).double()", "expected"),
    "inputs_unmodified": ("return x.mul_(2)", "tensor argument 1 was changed by the call"),
    "non_contiguous_inputs": (
        "return 2 * x.as_strided(x.shape, (12, 4, 1))",
        "out of inputs stored in reverse, with gaps",
    ),
    "device": ("return 2 * x + torch.zeros(4)", "a tensor is on the wrong device"),
    "own_memory": ("return x.view(x.shape)", "the output shares memory with an input"),
    "gradients": ("return 2 * x.detach() + 0 * x", "the gradient of argument 1"),
}


def handle(folder: Path, source: str) -> Handle:
    path = folder / "attempt.py"
    path.write_text(source)
    return local_handle(path)


def run(made: standard.HiddenTest, attempt: Handle, reference: Handle) -> None:
    hidden_test("test_it", made).run(0, attempt, reference, seed=0)


@pytest.mark.parametrize("name", BROKEN)
def test_an_attempt_that_breaks_a_property_is_told_and_a_right_one_is_not(name: str, tmp_path: Path) -> None:
    body, said = BROKEN[name]
    made = getattr(standard, name)(function, cases=[SIZES])
    reference = handle(tmp_path, RIGHT)
    run(made, reference, reference)

    with pytest.raises(PropertyFailed) as failed:
        run(made, handle(tmp_path, f"import torch\n\ndef double(x, keep=None):\n    {body}\n"), reference)

    assert said in failed.value.message


@pytest.mark.parametrize("name", [*BROKEN, "train_and_eval_alike"])
def test_a_right_module_holds_every_property(name: str, tmp_path: Path) -> None:
    reference = handle(tmp_path, RIGHT)

    run(getattr(standard, name)(module, cases=[SIZES]), reference, reference)


def test_a_module_that_depends_on_its_mode_is_told(tmp_path: Path) -> None:
    reference = handle(tmp_path, RIGHT)
    drops = handle(
        tmp_path, RIGHT.replace("2 * x * self.weight", "torch.dropout(2 * x * self.weight, 0.5, self.training)")
    )

    with pytest.raises(PropertyFailed, match=r"out in train\(\), compared with eval\(\)"):
        run(standard.train_and_eval_alike(module, cases=[SIZES]), drops, reference)


def test_from_scratch_is_said_once_and_blocks_what_it_forbids(tmp_path: Path) -> None:
    made = standard.from_scratch(function, blocks=FORBIDDEN_SOFTMAXES, cases=[SIZES])
    reference = handle(tmp_path, RIGHT)
    run(made, reference, reference)

    assert hidden_test("test_from_scratch", made).property.blocks == FORBIDDEN_SOFTMAXES
    with pytest.raises(PropertyFailed, match=r"calls F\.softmax, which is ready-made"):
        run(made, handle(tmp_path, "def double(x):\n    return x.softmax(-1)\n"), reference)


def test_a_kata_may_use_its_own_words_calls_and_tests_name(tmp_path: Path) -> None:
    keep = torch.ones(3, 1, dtype=torch.bool)
    made = standard.inputs_unmodified(
        function, calls=lambda sizes: [(randn(2, 3, 4), keep)], claim="The flags stay.", needs="values", cases=[SIZES]
    )
    writes = "def double(x, keep):\n    keep.logical_not_()\n    return 2 * x\n"
    tested = hidden_test("test_flags_unmodified", made).property

    assert (tested.name, tested.claim, tested.needs, tested.tier) == (
        "flags_unmodified",
        "The flags stay.",
        ("values",),
        "core",
    )
    with pytest.raises(PropertyFailed, match="tensor argument 2 was changed by the call"):
        run(made, handle(tmp_path, writes), handle(tmp_path, RIGHT))


def test_a_claim_names_the_inputs() -> None:
    made = standard.inputs_unmodified(function, cases=[SIZES])

    assert hidden_test("test_inputs_unmodified", made).property.claim == "The call does not change x."


def test_an_argument_that_a_property_does_not_take_is_an_error() -> None:
    with pytest.raises(TypeError, match="terms"):
        standard.device(function, terms=lambda sizes: 3)


def test_a_call_that_is_no_tuple_is_an_error(tmp_path: Path) -> None:
    reference = handle(tmp_path, RIGHT)
    made = standard.device(function, calls=lambda sizes: (randn(2, 3, 4),), cases=[SIZES])

    with pytest.raises(TypeError, match="gives a Tensor, and must give a tuple of arguments for each call"):
        run(made, reference, reference)
