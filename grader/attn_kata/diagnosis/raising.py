"""The operation that ends a call with an exception about shapes: what its tensors are, and which mistake that shows.

Tensors are known by their numbers, in any order of their dimensions: a tensor with the numbers of k is k, and the order of its
dimensions can be said in letters.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attn_kata.diagnosis.alike import ALIKE
from attn_kata.diagnosis.departure import CONTEXT, MERGED, OUTPUT, SCALED, SCORES, WEIGHTS, Traced, seen
from attn_kata.diagnosis.outcomes import about_shapes
from attn_kata.diagnosis.pipeline import Pipeline, State
from attn_kata.diagnosis.probing import ProbeResults
from attn_kata.properties.results import Operand, Step

IDS = (
    "score.not_transposed",
    "score.wrong_transpose",
    "split.order",
    "merge.order",
    "layout.sizes",
    "layout.product",
    "layout.broadcast",
    "python.arguments",
)

_OF_SIZES = re.compile(r"is invalid for input of size|don't multiply up to the size of dim")
_OF_DIMENSION = re.compile(r"^Dimension out of range|duplicate dims are not allowed")
_OF_BROADCAST = re.compile(r"The size of tensor a \(\d+\) must match|doesn't match the broadcast shape")
_PRODUCTS = ("matmul", "__matmul__", "bmm", "mm")  # of two tensors and nothing else
_OTHER_PRODUCTS = ("einsum", "baddbmm", "addmm")
_LAYERS = ("linear",)
_BEHIND_TOKENS = [0, 2, 3, 1]  # keys (B, T, H, D), which nothing has put in heads, with the last two exchanged
_DIMENSIONS = {  # the last dimensions of what the right computation passes
    "q": ("Tq", "D"),
    "k": ("Tk", "D"),
    "v": ("Tk", "Dv"),
    SCORES: ("Tq", "Tk"),
    SCALED: ("Tq", "Tk"),
    WEIGHTS: ("Tq", "Tk"),
    CONTEXT: ("Tq", "Dv"),
    MERGED: ("Tq", "E"),
    OUTPUT: ("Tq", "E"),
}


@dataclass(frozen=True, kw_only=True)
class Known:
    """A tensor of the right computation, in one of the forms that code may give it, with a letter for each dimension."""

    name: str
    value: Tensor
    letters: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Named:
    """A tensor that the operation was given. Without a name, its letters are its sizes."""

    name: str
    letters: tuple[str, ...]
    right: tuple[str, ...] = ()  # the letters in the order of the right computation

    def __str__(self) -> str:
        dimensions = f"({', '.join(self.letters)})"
        return f"{self.name} {dimensions}" if self.name else f"a tensor {dimensions}"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """Where a call ends with an exception about shapes: the line, what is done there and with what, and the mistake's id."""

    line: int
    operation: str
    operands: tuple[Named, ...]
    mistake: str | None

    def __str__(self) -> str:
        of_a_layer = self.operation in _LAYERS  # the others are its weights
        told = [str(one) for one in self.operands[: 1 if of_a_layer else None]]
        if self.operation in _PRODUCTS and len(told) == 2:
            return f"line {self.line} multiplies {told[0]} by {told[1]}"
        return f"line {self.line} calls {self.operation.strip('_')} with {' and '.join(told)}"


def endings(pipeline: Pipeline, asked: ProbeResults, followed: list[Traced]) -> list[Ending]:
    """Of each probe that raises about shapes, the operation that does."""
    found: list[Ending] = []
    for begun, answer, one in zip(asked.begun, asked.answers, followed, strict=True) if followed else ():
        if one.raising is None or not (about_shapes(answer.raised) or _OF_DIMENSION.search(answer.raised)):
            continue
        try:
            forms = [*_forms(pipeline, begun)]
        except (RuntimeError, IndexError, ValueError):  # a mistake that the pipeline makes raises too
            forms = []
        operands = tuple(_named(each, one.steps, forms) for each in one.raising.operands)
        mistake = _mistake(one.raising.operation, operands, answer.raised)
        found.append(Ending(line=one.raising.line, operation=one.raising.operation, operands=operands, mistake=mistake))
    return found


def _mistake(operation: str, operands: tuple[Named, ...], text: str) -> str | None:
    names = [one.name for one in operands]
    if _OF_SIZES.search(text):
        return "layout.sizes"
    if _OF_DIMENSION.search(text):
        return "python.arguments"
    if operation in _PRODUCTS and names == ["q", "k"]:
        q, k = operands
        if q.letters[-2:] != q.right[-2:] or _places(k) == _BEHIND_TOKENS:
            return "split.order"
        turned = _places(k) == _places(q)
        return "score.not_transposed" if turned else "score.wrong_transpose"
    if operation in _PRODUCTS and names in ([WEIGHTS, "v"], [SCORES, "v"]):
        weights, v = operands
        fits = weights.letters[-2:] == weights.right[-2:]
        return "split.order" if fits and v.letters[-2:] != v.right[-2:] else "layout.product"
    if operation in _LAYERS and names[:1] == [CONTEXT] and "H" in operands[0].letters:
        return "merge.order"
    if operation in (*_PRODUCTS, *_OTHER_PRODUCTS, *_LAYERS):
        return "layout.product"
    return "layout.broadcast" if _OF_BROADCAST.search(text) else None


def _places(one: Named) -> list[int]:
    """Where the dimensions of a tensor are in the right computation, in their own order."""
    return [one.right.index(letter) for letter in one.letters]


def _forms(pipeline: Pipeline, begun: State) -> Iterator[Known]:
    """The tensors of the right computation: as they are, with the heads side by side or in the batch, and head by head."""
    right = seen(pipeline, begun)
    queries = right["q"].shape[-2] if "q" in right else 0
    alike = "k" in right and right["k"].shape[-2] == queries
    shorter = {"Tq": "T", "Tk": "T"} if alike else {}
    if "v" in right and "q" in right and right["v"].shape[-1] == right["q"].shape[-1]:
        shorter["Dv"] = "D"
    x, context = (getattr(begun, name, None) for name in ("x", "context"))
    if isinstance(x, Tensor) and x.dim() == 3:
        yield Known(name="x", value=x, letters=("B", "T", "E"))
    heads = getattr(begun, "out", None)
    if isinstance(heads, Tensor) and heads.dim() == 4:  # merge_heads is given them
        yield Known(name="x", value=heads, letters=("B", "H", "T", "D"))
    if isinstance(context, Tensor) and context is not x and context.dim() == 3:
        yield Known(name="the context that is given", value=context, letters=("B", "T" if alike else "Tk", "E"))
    for name, last in _DIMENSIONS.items():
        value = right.get(name)
        lead = {2: (), 3: ("B",), 4: ("B", "H")}.get(value.dim() if value is not None else 0)
        if value is None or lead is None:
            continue
        shown = SCORES if name == SCALED else name
        letters = lead + tuple(shorter.get(one, one) for one in last)
        yield Known(name=shown, value=value, letters=letters)
        if len(lead) == 2:
            yield Known(name=shown, value=value.flatten(0, 1), letters=("B·H", *letters[2:]))
            if last != ("Tq", "Tk"):
                yield Known(name=shown, value=value.transpose(1, 2).flatten(2), letters=("B", letters[2], "E"))
            for head in value.unbind(1):
                yield Known(name=shown, value=head, letters=("B", *letters[2:]))


def _named(operand: Operand, steps: list[Step], forms: list[Known]) -> Named:
    value = steps[operand.source].value if operand.source is not None else None
    for one in forms:
        if value is None:
            if one.value.shape == operand.shape:  # given as it is
                return Named(name=one.name, letters=one.letters, right=one.letters)
            continue
        order = _order(value, one.value)
        if order is not None:
            return Named(name=one.name, letters=tuple(one.letters[place] for place in order), right=one.letters)
    return Named(name="", letters=tuple(map(str, operand.shape)))


def _order(value: Tensor, right: Tensor) -> tuple[int, ...] | None:
    """The order of the dimensions of `right` in which it is the value, or a number times it; None where there is none."""
    if value.dim() != right.dim() or value.numel() != right.numel() or not float(right.norm()):
        return None
    wanted = right.to(torch.float64)
    factor = float(value.norm() / wanted.norm())
    near = ALIKE * factor * (1 + float(wanted.abs().max()))
    for order in itertools.permutations(range(right.dim())):
        turned = wanted.permute(order)
        if turned.shape == value.shape and factor and float((turned * factor - value).abs().max()) <= near:
            return order
    return None
