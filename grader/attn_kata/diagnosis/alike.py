"""Whether what code computes is a tensor of the right computation, however the code lays it out."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

ALIKE = 1e-6  # of two numbers, relative to the largest
HIDDEN = 1e4  # a score at least as far from 0 is a masked one


def same(got: tuple[Tensor, ...], wanted: Tensor) -> bool:
    """Whether it is the other tensor (..., Tq, Tk): laid out alike, with heads in the batch, or one head after another."""
    return any(one.shape == wanted.shape and _near(_told(one), _told(wanted)) for one in _in_full(got, wanted))


def _in_full(got: tuple[Tensor, ...], wanted: Tensor) -> list[Tensor]:
    """The tensors as one with the dimensions of `wanted`, in each way that heads are laid out."""
    alike = len({one.shape for one in got}) == 1 and sum(one.numel() for one in got) == wanted.numel()
    if not alike or got[0].shape[-2:] != wanted.shape[-2:]:
        return []
    if wanted.dim() != 4:
        return [one.reshape(wanted.shape) for one in got[: len(got) == 1]]
    samples, heads, *rest = wanted.shape
    if len(got) > 1:
        return [torch.stack(got, dim=1)] if len(got) == heads and got[0].dim() == 3 else []
    return [got[0].reshape(wanted.shape), got[0].reshape(heads, samples, *rest).transpose(0, 1)]


def has_numbers(right: Tensor, candidate: tuple[Tensor, ...]) -> bool:
    """Whether the tensors have the numbers of `right` in any order."""
    if not _may_be_equal(right, candidate):
        return False
    got, wanted = _told(torch.cat([one.reshape(-1) for one in candidate])), _told(right.reshape(-1))
    return _near(got.sort().values, wanted.sort().values)


def has_rows(right: Tensor, candidate: tuple[Tensor, ...], *, dim: int, in_order: bool = True) -> bool:
    """Whether the rows along some dimension of the tensors are those along `dim` of `right`, in any order.

    With `in_order`, the numbers of a row are in the order of the right one, too.
    """
    size = right.shape[dim]
    if not _may_be_equal(right, candidate):
        return False
    wanted = _rows(right, dim)
    for other in range(1, max(one.dim() for one in candidate) + 1):
        if all(one.dim() >= other and one.shape[-other] == size for one in candidate):
            got = torch.cat([_rows(one, -other) for one in candidate])
            sides = [one if in_order else one.sort(dim=-1).values for one in (got, wanted)]
            by = torch.linspace(1, 2, size, dtype=torch.float64).sqrt()  # rows of weights all have the same plain sum
            if _near(*(one[(one @ by).argsort()] for one in sides)):
                return True
    return False


def _may_be_equal(right: Tensor, candidate: tuple[Tensor, ...]) -> bool:
    """Whether the tensors have as many numbers as `right`, and these the same sum: a cheap test that most end at."""
    if sum(one.numel() for one in candidate) != right.numel():
        return False
    wanted = _told(right)
    apart = sum(float(_told(one).sum()) for one in candidate) - float(wanted.sum())
    return abs(apart) <= ALIKE * right.numel() * (1 + float(wanted.abs().max()))


def _rows(tensor: Tensor, dim: int) -> Tensor:
    return _told(tensor).movedim(dim, -1).reshape(-1, tensor.shape[dim])


def may_be_in_heads(value: Tensor, right: Tensor) -> bool:
    """Whether a tensor could be `right` (B, H, T, D): as many numbers, and a dimension for the tokens and one for a head."""
    return right.dim() == 4 and value.numel() == right.numel() and has_sizes(value, right.shape[-2:])


def has_sizes(value: Tensor, sizes: Sequence[int]) -> bool:
    """Whether a tensor has dimensions of these sizes, each its own."""
    return all(list(value.shape).count(size) >= list(sizes).count(size) for size in sizes)


def is_in_heads(right: Tensor, candidate: tuple[Tensor, ...]) -> bool:
    """Whether the tensors have the vectors of `right` (B, H, T, D), and its tokens in order."""
    return has_rows(right, candidate, dim=-2) and has_rows(right, candidate, dim=-1, in_order=False)


def _told(tensor: Tensor) -> Tensor:
    """float64, with one number for all that a mask has put far away, and another for NaN."""
    numbers = tensor.to(torch.float64)
    return numbers.masked_fill(numbers.abs() >= HIDDEN, -HIDDEN).masked_fill(numbers.isnan(), HIDDEN)


def _near(got: Tensor, wanted: Tensor) -> bool:
    return float((got - wanted).abs().max()) <= ALIKE * (1 + float(wanted.abs().max()))


def factor_between(got: list[Tensor], wanted: Tensor) -> float | None:
    """The number that the numbers of `got` are those of `wanted` times, in any order; None where there is none, or 1.

    Without those that a mask has put far away.
    """
    if sum(one.numel() for one in got) != wanted.numel():
        return None
    flat = torch.cat([one.reshape(-1) for one in got]), wanted.reshape(-1).to(torch.float64)
    mine, right = (one[one.abs() < HIDDEN].sort().values for one in flat)
    if len(mine) != len(right) or len(mine) < 2 or not float(mine.abs().max()):
        return None
    size = float(mine.norm() / right.norm())
    for factor in (size, -size):
        if _near(mine, (right * factor).sort().values) and abs(factor - 1) > ALIKE:
            return factor
    return None
