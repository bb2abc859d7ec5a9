"""Standard properties: the properties that most katas share. A kata says how its code is called, and which it takes.

    def qkv(sizes): ...

    attention = standard.function("scaled_dot_product_attention", lambda sizes: [qkv(sizes)], inputs="q, k and v")

    test_from_scratch = standard.from_scratch(attention, blocks=FORBIDDEN_ATTENTIONS, cases=SIZES[:1])
    test_inputs_unmodified = standard.inputs_unmodified(attention, needs="output_shape", cases=SIZES[:2])

The name of a property is the name of its test. Each takes one or more entry points, and:

    needs, cases     as `claims` takes them
    claim, look_at   the kata's own words, where the usual ones do not fit
    calls            other calls than the entry point's own
    terms            (float32, half_precision) sizes -> int, the number of rounded terms, instead of the entry point's
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from attn_kata.properties import checks
from attn_kata.properties.cases import Drawn, Sizes
from attn_kata.properties.claims import claims
from attn_kata.properties.compare import assert_close
from attn_kata.properties.handle import Handle, Target
from attn_kata.properties.results import Result
from attn_kata.report.model import Tier

Arguments = tuple[Any, ...]
Calls = Callable[[Sizes], Iterable[Arguments]]
Pair = Callable[..., tuple[Target, Target]]
HiddenTest = Callable[..., None]

LONG = 128  # a ready-made attention may be used for what is longer only


@dataclass(frozen=True, kw_only=True)
class EntryPoint:
    """A function or a module of a kata's contract, and how it is called.

    `pair(attempt, reference, sizes, dtype)` gives the attempt's and the reference's: modules with the same weights, the
    attempt's in `dtype` and the reference's in float64. `calls(sizes)` gives the arguments of each call, floating tensors
    in float64. `inputs` names them in a sentence. `modes` are the modes of a module for the calls: True is train(), False
    is eval(). `terms(sizes)` is the number of rounded terms in one number of the output. `rows` and `columns` name the
    last two dimensions of the output, and `axes` those of the other tensors of a result in parts, by name. `differentiated`
    are the parts whose gradients the contract asks for; empty means all tensors.
    """

    pair: Pair
    calls: Calls
    inputs: str = "the inputs"
    modes: tuple[bool | None, ...] = (None,)
    terms: Callable[[Sizes], int] = lambda sizes: 1
    rows: str = "query"
    columns: str = "feature"
    axes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    differentiated: tuple[str, ...] = ()

    def arguments(self, sizes: Sizes) -> Iterator[Arguments]:
        """The arguments of each call. Raises TypeError for a call that is not a tuple or a list."""
        for args in self.calls(sizes):
            if not isinstance(args, (tuple, list)):
                raise TypeError(
                    f"calls(sizes) gives a {type(args).__name__}, and must give a tuple of arguments for each call"
                )
            yield tuple(args)

    def close(self, actual: Result, expected: Result, *, atol: float, what: str = "out") -> None:
        """`assert_close` for each tensor of two results, with the names of its dimensions. `what` says "out" for its name."""
        for place, (name, tensor) in enumerate(expected.tensors.items()):
            rows, columns = (self.rows, self.columns) if place == 0 else self.axes.get(name, ("row", "column"))
            said = what if name == "out" else re.sub(r"\bout\b", name, what)
            assert_close(actual.tensors[name], tensor, atol=atol, what=said, rows=rows, columns=columns)


def function(name: str, calls: Calls, **described: Any) -> EntryPoint:
    """The function `name` with its `calls`. `described` are the other fields of EntryPoint."""

    def pair(attempt: Handle, reference: Handle, sizes: Sizes, dtype: torch.dtype) -> tuple[Target, Target]:
        return getattr(attempt, name), getattr(reference, name)

    return EntryPoint(pair=pair, calls=calls, **described)


def module(pair: Pair, calls: Calls, **described: Any) -> EntryPoint:
    """The module that `pair` builds, called in train() and in eval(). `described` are the other fields of EntryPoint."""
    return EntryPoint(pair=pair, calls=calls, modes=(True, False), **described)


class StandardProperty:
    """A property of entry points. Call it with entry points to make a hidden test."""

    def __init__(self, check: Callable[..., None], claim: str, look_at: str, tier: Tier) -> None:
        functools.update_wrapper(self, check)
        self._check, self._claim, self._look_at, self._tier = check, claim, look_at, tier

    def __call__(
        self,
        *entries: EntryPoint,
        needs: str | Iterable[str] = (),
        cases: Iterable[Sizes | Drawn] = (),
        claim: str | None = None,
        look_at: str | None = None,
        calls: Calls | None = None,
        blocks: tuple[str, ...] = (),
        **how: Any,
    ) -> HiddenTest:
        """A hidden test of this property. Raises TypeError for an argument that this property does not take."""
        if blocks:
            how["forbidden"] = blocks
        inspect.signature(self._check).bind(None, None, None, None, **how)
        asked = [entry if calls is None else replace(entry, calls=calls) for entry in entries]

        def test(attempt: Handle, reference: Handle, sizes: Sizes) -> None:
            for entry in asked:
                self._check(entry, attempt, reference, sizes, **how)

        test.__doc__ = self.__doc__
        said = (claim or self._claim).format(inputs=asked[0].inputs)
        mark = claims(said, look_at=look_at or self._look_at, needs=needs, tier=self._tier, cases=cases, blocks=blocks)
        return mark(test)


def _standard(claim: str, *, look_at: str, tier: Tier = "core") -> Callable[[Callable[..., None]], StandardProperty]:
    return lambda check: StandardProperty(check, claim, look_at, tier)


@_standard("No ready-made attention is called.", look_at="what the contract forbids")
def from_scratch(
    entry: EntryPoint, attempt: Handle, reference: Handle, sizes: Sizes, forbidden: tuple[str, ...]
) -> None:
    """No operation runs whose name contains one of the words in `blocks`. This is the first test in a kata's file.

    It calls the attempt in float64 and in float32, because an attempt may use a ready-made attention for one of them only.
    It calls a module in train() and in eval(), because eval() may use a faster implementation. Long inputs are recorded in
    float32 alone: the other properties ask for them in float64, and then what is forbidden is blocked.
    """
    long = any(isinstance(size, int) and size > LONG for size in sizes.as_dict().values())
    for place, dtype in enumerate((torch.float64, torch.float32)):
        if long and dtype is torch.float64:
            continue
        ours, _ = entry.pair(attempt, reference, sizes, dtype)
        mode = entry.modes[place % len(entry.modes)]
        for args in entry.arguments(sizes):
            checks.check_from_scratch(ours, *checks.converted(args, dtype), forbidden=forbidden, training=mode)


@_standard(
    "Gradients to {inputs} are those of the definition.",
    look_at="whether any step is detached, rounded or done in place",
)
def gradients(entry: EntryPoint, attempt: Handle, reference: Handle, sizes: Sizes) -> None:
    """Gradients to every floating input and every parameter are right to 1e-5, for a random cotangent, in every mode."""
    ours, theirs = entry.pair(attempt, reference, sizes, torch.float64)
    for args in entry.arguments(sizes):
        for mode in entry.modes:
            checks.check_gradients(ours, theirs, *args, training=mode, of=entry.differentiated)


@_standard("train() and eval() give the same output.", look_at="dropout, or anything else that depends on the mode")
def train_and_eval_alike(entry: EntryPoint, attempt: Handle, reference: Handle, sizes: Sizes) -> None:
    """A module gives the same output in both modes, to 1e-5, and the same output twice in train(). NaN in both is alike."""
    ours, _ = entry.pair(attempt, reference, sizes, torch.float64)
    for args in entry.arguments(sizes):
        evaluated = ours.run(*args, training=False)
        for _ in range(2):  # random numbers may agree once by luck
            trained = ours.run(*args, training=True)
            for name, tensor in trained.tensors.items():  # NaN in both: other properties tell of that
                other = evaluated.tensors[name]
                both = tensor.isnan() & other.isnan() if tensor.shape == other.shape else None
                trained.tensors[name] = tensor if both is None else tensor.masked_fill(both, 0.0)
            entry.close(trained, evaluated, atol=1e-5, what="out in train(), compared with eval(): out")


@_standard(
    "The output has the dtype of the inputs, in float32 and float64.",
    look_at="conversions of the dtype, and tensors made without dtype=",
)
def output_dtype(entry: EntryPoint, attempt: Handle, reference: Handle, sizes: Sizes) -> None:
    """Inputs and weights in float32 give an output in float32, and those in float64 one in float64."""
    for dtype in (torch.float32, torch.float64):
        ours, _ = entry.pair(attempt, reference, sizes, dtype)
        for args in entry.arguments(sizes):
            checks.check_keeps_dtype(ours, *args, dtype=dtype)


def _computes_in(
    dtypes: tuple[torch.dtype, ...],
    entry: EntryPoint,
    attempt: Handle,
    reference: Handle,
    sizes: Sizes,
    terms: Callable[[Sizes], int] | None,
) -> None:
    count = (terms or entry.terms)(sizes)
    for dtype in dtypes:
        ours, theirs = entry.pair(attempt, reference, sizes, dtype)
        for args in entry.arguments(sizes):
            checks.check_computes_in_dtype(ours, theirs, *args, dtype=dtype, terms=count, close=entry.close)


@_standard(
    "In float32 the values are right within float32's rounding.", look_at="arithmetic in a narrower dtype than float32"
)
def float32(
    entry: EntryPoint, attempt: Handle, reference: Handle, sizes: Sizes, terms: Callable[[Sizes], int] | None = None
) -> None:
    """In float32 the output is right within about sqrt(terms) roundings. It is compared with float64 on the same numbers."""
    _computes_in((torch.float32,), entry, attempt, reference, sizes, terms)


@_standard("float16 and bfloat16 work.", look_at="constants that the dtype cannot hold", tier="edge")
def half_precision(
    entry: EntryPoint, attempt: Handle, reference: Handle, sizes: Sizes, terms: Callable[[Sizes], int] | None = None
) -> None:
    """As `float32`, in float16 and in bfloat16."""
    _computes_in((torch.float16, torch.bfloat16), entry, attempt, reference, sizes, terms)


@_standard("float64 is kept throughout: exact to 1e-9.", look_at="conversions to float32 in any step", tier="edge")
def float64_throughout(entry: EntryPoint, attempt: Handle, reference: Handle, sizes: Sizes) -> None:
    """In float64 the output is right to 1e-9."""
    ours, theirs = entry.pair(attempt, reference, sizes, torch.float64)
    for args in entry.arguments(sizes):
        entry.close(ours.run(*args), theirs.run(*args), atol=1e-9)


@_standard("The call does not change {inputs}.", look_at="in-place operations on the arguments")
def inputs_unmodified(entry: EntryPoint, attempt: Handle, reference: Handle, sizes: Sizes) -> None:
    """The call does not change the shape, dtype or numbers of a tensor argument."""
    ours, _ = entry.pair(attempt, reference, sizes, torch.float64)
    for args in entry.arguments(sizes):
        checks.check_leaves_inputs(ours, *args)


@_standard(
    "The output does not depend on the memory layout of {inputs}.",
    look_at="view on a tensor whose layout you do not know",
)
def non_contiguous_inputs(entry: EntryPoint, attempt: Handle, reference: Handle, sizes: Sizes) -> None:
    """Inputs in any layout give the same output as contiguous inputs with the same numbers, to 1e-5. See `layouts`."""
    ours, theirs = entry.pair(attempt, reference, sizes, torch.float64)
    for args in entry.arguments(sizes):
        for how, laid_out in layouts(args):
            right = theirs.run(*contiguous(laid_out))
            entry.close(ours.run(*laid_out), right, atol=1e-5, what=f"out of inputs {how}: out")


@_standard("Every tensor is on the device of the inputs.", look_at="tensors made without device=")
def device(entry: EntryPoint, attempt: Handle, reference: Handle, sizes: Sizes) -> None:
    """No tensor is made on the default device and then used together with an input, or returned."""
    ours, _ = entry.pair(attempt, reference, sizes, torch.float64)
    for args in entry.arguments(sizes):
        checks.check_stays_on_device(ours, *args)


@_standard(
    "The output shares no memory with an input.", look_at="whether you return an input or a view of it", tier="edge"
)
def own_memory(entry: EntryPoint, attempt: Handle, reference: Handle, sizes: Sizes) -> None:
    """Writing into the output later does not change an input."""
    ours, _ = entry.pair(attempt, reference, sizes, torch.float64)
    for args in entry.arguments(sizes):
        checks.check_own_memory(ours, *args)


def layouts(args: Arguments) -> Iterator[tuple[str, Arguments]]:
    """`args` with their tensors in non-contiguous layouts, and words for each layout.

    The layouts: reversed dimensions with gaps, so that no two dimensions can be merged; two dimensions swapped, as by a
    transpose; and the first entry expanded, so that all entries share its memory.
    """
    yield "stored in reverse, with gaps", _each(checks.strided, args)
    yield "stored with two dimensions swapped", _each(_swapped, args)
    yield "expanded from their first entry", _each(lambda value: value[:1].expand_as(value), args)


def contiguous(args: Arguments) -> Arguments:
    """`args` as contiguous tensors with the same numbers."""
    return _each(Tensor.contiguous, args)


def _each(change: Callable[[Tensor], Tensor], args: Arguments) -> Arguments:
    return tuple(change(value) if isinstance(value, Tensor) and value.dim() > 0 else value for value in args)


def _swapped(value: Tensor) -> Tensor:
    """(B, T, E) stored (T, B, E); (B, H, T, D) stored (B, T, H, D), as a split into heads leaves it."""
    if value.dim() < 2:
        return value
    first = 1 if value.dim() == 4 else 0
    return value.transpose(first, first + 1).contiguous().transpose(first, first + 1)
