"""The one product of a call that the grader makes itself, with a matrix of its own between the two factors.

How often an attempt multiplies is its own word, and a word can be forged. So the grader has the call made twice: the first
time the factors of the product that sums over a given size are told, the second time its result is handed in. What comes out
is right for an input that only the grader knows (it is `mix` times the one that was sent), and that took one product: the
grader answers no second one, and from the numbers of one nothing else about the mix can be found out.

Everything here may be tampered with by the attempt that is asked. It only helps an honest one.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


class Mixing:
    """A context in which products are made by kernels of ours.

    The first product that sums over one of the sizes `over` is kept in `factors`, ... x k and k x ...; where there is an
    `answer`, its numbers are its result.
    """

    def __init__(self, over: list[int], answer: Tensor | None) -> None:
        self._over = set(over)
        self._answer = answer
        self._library: Any = None
        self.factors: tuple[Tensor, Tensor] | None = None

    def __enter__(self) -> Mixing:
        sparse = ("SparseCPU", "SparseCsrCPU")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that kernels are overridden
            self._library = torch._C._dispatch_library("IMPL", "aten", "", "mixing", 0)
            for name, kernel, keys in (
                ("mm", self._product, sparse),
                ("bmm", self._product, sparse),
                ("addmm", self._added, sparse),
                ("baddbmm", self._added, ()),
                ("mv", self._vector, ()),
                ("dot", self._dot, ()),
                ("vdot", self._dot, ()),
                ("addmv", self._added_vector, ()),
                ("addbmm", self._added_batch, ()),
                ("convolution", self._convolution, ()),
            ):
                for key in ("CPU", *keys):
                    self._library.impl(name, key, kernel)
                for writing in (f"{name}.out", f"{name}_"):
                    if torch._C._dispatch_has_kernel(f"aten::{writing}"):
                        self._library.impl(writing, "CPU", _written(kernel))
        return self

    def __exit__(self, *error: object) -> None:
        self._library = None  # with it the kernels of ours end

    # Kernels by the arguments that torch hands to them.

    def _product(self, one: Tensor, other: Tensor) -> Tensor:
        one, other = (value if value.layout is torch.strided else value.to_dense() for value in (one, other))
        shape = (*one.shape[:-1], other.shape[-1])
        if self.factors is None and one.shape[-1] in self._over:
            self.factors = one, other
            if self._answer is not None:
                return self._answer.to(one.dtype).reshape(shape).clone()
        return (one.unsqueeze(-1) * other.unsqueeze(-3)).sum(-2).to(one.dtype)

    def _vector(self, one: Tensor, vector: Tensor) -> Tensor:
        return self._product(one, vector[:, None])[:, 0]

    def _dot(self, one: Tensor, other: Tensor) -> Tensor:
        return self._product(one[None], other[:, None])[0, 0]

    def _added(self, first: Tensor, one: Tensor, other: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        return _sum(first, self._product(one, other), beta, alpha)

    def _added_vector(self, first: Tensor, one: Tensor, vector: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        return _sum(first, self._vector(one, vector), beta, alpha)

    def _added_batch(self, first: Tensor, one: Tensor, other: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        return _sum(first, self._product(one, other).sum(0), beta, alpha)

    def _convolution(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
        output_padding: Any, groups: int,
    ) -> Tensor:  # fmt: skip
        """A convolution as the product of its windows with its weights, where that is what it is."""
        if transposed or groups != 1 or any(size != 1 for size in dilation):
            flags = (False, False, True, True)  # benchmark, deterministic, cuDNN's, TF32's: none of them is the CPU's
            made: Tensor = torch.ops.aten._convolution.default(
                x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *flags
            )
            return made
        windows = functional.pad(x, [size for size in reversed(list(padding)) for _ in range(2)])  # (N, C, ...)
        for place, (size, step) in enumerate(zip(weight.shape[2:], stride, strict=True), start=2):
            windows = windows.unfold(place, size, step)  # (N, C, ..., size)
        spatial = weight.dim() - 2
        windows = windows.movedim(1, 1 + spatial)  # (N, ..., C, sizes)
        rows = windows.flatten(1 + spatial)  # (N, ..., C * sizes)
        out = self._product(rows.flatten(0, -2), weight.flatten(1).t())  # (N * ..., O)
        out = out.reshape(*rows.shape[:-1], -1).movedim(-1, 1)  # (N, O, ...)
        return out if bias is None else out + bias.view(-1, *[1] * spatial)


def _written(kernel: Any) -> Any:
    """The variant of a kernel that writes its result somewhere: `mm.out`, `addmm_`."""

    def write(first: Tensor, *others: Any, out: Tensor | None = None, **scales: Any) -> Tensor:
        result = kernel(first, *others, **scales)
        target = first if out is None else out
        return target.resize_(result.shape).copy_(result)

    return write


def _sum(first: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """`beta` 0 leaves the first out, whatever it holds."""
    scaled = product if alpha == 1 else alpha * product
    return scaled if beta == 0 else scaled + (first if beta == 1 else beta * first)


def mixed(factors: tuple[Tensor, Tensor], mix: Tensor, *, most: int) -> Tensor | None:
    """The product of the factors with `mix` (k, k) between them; None where there is none, or of more numbers than `most`.

    Where they sum over k + 1, a column of the one is all 1: an added number, which is not mixed. Runs in the grader.
    """
    one, other = (factor.to(mix.dtype) for factor in factors)
    if one.dim() not in (2, 3) or other.dim() != one.dim() or one.shape[-1] != other.shape[-2]:
        return None
    if one.dim() == 3 and one.shape[0] != other.shape[0]:
        return None
    size = one.shape[-1]
    if one.shape[:-1].numel() * other.shape[-1] > most:
        return None
    if size == len(mix) + 1:
        ones = (one == 1).flatten(0, -2).all(0) | (other == 1).transpose(-2, -1).flatten(0, -2).all(0)  # (k + 1,)
        places = ones.nonzero().flatten().tolist()
        if not places:
            return None
        rest = [place for place in range(size) if place != places[-1]]
        wider = torch.eye(size, dtype=mix.dtype)
        wider[torch.tensor(rest)[:, None], torch.tensor(rest)] = mix
        mix = wider
    elif size != len(mix):
        return None
    return one @ mix @ other
