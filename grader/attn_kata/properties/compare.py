"""Comparisons. A failure gives the numbers at one index."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attn_kata.properties.failures import NAN_ON_BOTH_SIDES, PropertyFailed
from attn_kata.report.model import Example

EXAMPLE_ROWS, EXAMPLE_COLUMNS = 8, 8


def assert_shape(actual: Tensor, expected: tuple[int, ...], *, what: str = "the output") -> None:
    """Fail unless `actual` has exactly this shape. Raises PropertyFailed."""
    if tuple(actual.shape) != tuple(expected):
        raise PropertyFailed(f"{what} has shape {_shape(actual.shape)}, expected {_shape(expected)}")


def assert_close(
    actual: Tensor,
    expected: Tensor,
    *,
    atol: float,
    rtol: float | None = None,
    what: str = "out",
    rows: str = "query",
    columns: str = "feature",
    infinities: bool = False,
) -> None:
    """Fail unless |actual - expected| <= atol + rtol |expected| everywhere, in float64. Nothing is close to NaN or infinity.

    Both have the same shape, which may be any shape. The default of `rtol` is `atol`. `what` names the tensor in the message.
    `rows` and `columns` name its last two dimensions for the picture. With `infinities`, an infinity that is expected must be
    there, with its sign. Raises PropertyFailed with the first index that differs.
    """
    assert_shape(actual, tuple(expected.shape), what=what)
    got, wanted = actual.to(torch.float64), expected.to(torch.float64)
    if got.numel() and bool((got - wanted).abs().max() <= atol):
        return  # the usual case, in few operations: a NaN or an infinity on either side is never within atol
    near = (got - wanted).abs() <= atol + (atol if rtol is None else rtol) * wanted.abs()
    wrong = ~near | ~wanted.isfinite()  # a comparison with NaN is False, and every number is near infinity
    if infinities:
        wrong = torch.where(wanted.isinf(), got != wanted, wrong)
    if not bool(wrong.any()):
        return
    index = [int(i) for i in wrong.nonzero()[0]]
    at = f"{what}[{', '.join(map(str, index))}]" if index else what
    count = int(wrong.sum())
    mine, right = float(got[tuple(index)]), float(wanted[tuple(index)])
    if not math.isfinite(right) and not (
        infinities and math.isinf(right)
    ):  # `expected` is another output of the attempt: the reference's outputs are finite
        other = NAN_ON_BOTH_SIDES
        if number(mine) != number(right):
            other = f"but the output that it is compared with is {number(right)}"
        raise PropertyFailed(
            f"{at} is {number(mine)}, {other} ({count} of {wrong.numel()})",
            _example(got, wanted, index, what, rows, columns),
        )
    shown = (number(mine), number(right)) if number(mine) != number(right) else (f"{mine:.10g}", f"{right:.10g}")
    raise PropertyFailed(
        f"{at} is {shown[0]}, expected {shown[1]} ({count} of {wrong.numel()} differ)",
        _example(got, wanted, index, what, rows, columns),
    )


def assert_equal(
    actual: Tensor, expected: Tensor, *, what: str = "out", rows: str = "query", columns: str = "key"
) -> None:
    """Fail unless shape, dtype and every entry are equal: for masks and integers. Raises PropertyFailed."""
    assert_shape(actual, tuple(expected.shape), what=what)
    if actual.dtype != expected.dtype:
        raise PropertyFailed(f"{what} is {_dtype(actual)}, expected {_dtype(expected)}")
    assert_close(actual, expected, atol=0.0, what=what, rows=rows, columns=columns)


def assert_holds(condition: bool, message: str) -> None:
    """Fail with `message` unless `condition`. Raises PropertyFailed."""
    if not condition:
        raise PropertyFailed(message)


def number(value: Tensor | float) -> str:
    """A number as a report shows it, with about four significant digits."""
    plain = float(value)
    if math.isnan(plain):
        return "nan"
    if math.isinf(plain):
        return "inf" if plain > 0 else "-inf"
    if plain == int(plain) and abs(plain) < 1e6:
        return str(int(plain))
    return f"{plain:.4f}" if 1e-3 <= abs(plain) < 1e4 else f"{plain:.3e}"


def _example(got: Tensor, wanted: Tensor, index: list[int], what: str, rows: str, columns: str) -> Example | None:
    """The 2-D slice with the first wrong number, or None if it is too large to read."""
    if got.dim() == 0:
        return None
    lead = tuple(index[:-2])
    part, right = (got[lead], wanted[lead]) if lead else (got, wanted)
    if part.dim() == 1:
        part, right, rows = part[None], right[None], ""
    if part.shape[0] > EXAMPLE_ROWS or part.shape[1] > EXAMPLE_COLUMNS:
        return None
    shown = f"{what}[{', '.join(map(str, lead))}]" if lead else what
    return Example(what=shown, rows=rows, columns=columns, expected=matrix(right), got=matrix(part))


def matrix(values: Tensor) -> list[list[float | None]]:
    """A 2-D tensor as plain numbers; None where one is not finite."""
    return [[value if math.isfinite(value) else None for value in row] for row in values.tolist()]


def _shape(shape: tuple[int, ...] | torch.Size) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _dtype(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
