"""Checks what an attempt returned, finds memory that it shares with an input, and computes gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attn_kata.protocol import wire
from attn_kata.protocol.messages import OPAQUE

_backward = torch.autograd.backward  # read before any attempt runs: later changes to torch do not affect it


class BadResult(Exception):
    """The attempt returned something that is not what the contract asks for: one plain tensor, or parts."""


def checked_parts(output: Any, returns: tuple[str, ...]) -> tuple[list[Tensor], list[Any]]:
    """The tensors and the opaque parts of a result, as the contract asks. Raises BadResult.

    `returns` has the names of the parts. If it is empty, the contract asks for one tensor.
    """
    if not returns:
        return [checked_tensor(output)], []
    if not isinstance(output, (tuple, list)) or len(output) != len(returns):
        names = ", ".join(name.removeprefix(OPAQUE) for name in returns)
        raise BadResult(f"returned {_describe_result(output)}; the contract asks for ({names})")
    named = list(zip(returns, output, strict=True))
    tensors = [checked_tensor(part, name) for name, part in named if not name.startswith(OPAQUE)]
    return tensors, [part for name, part in named if name.startswith(OPAQUE)]


def checked_tensor(output: Any, name: str = "") -> Tensor:
    """The result of a call, or its part `name`, if it is one ordinary tensor. Raises BadResult."""
    part = f" as {name}" if name else ""
    if type(output) not in (Tensor, nn.Parameter):
        raise BadResult(f"returned {_describe_result(output)}{part}; the contract asks for one torch.Tensor")
    if output.layout is not torch.strided or output.is_quantized or output.is_nested:
        raise BadResult(f"returned a tensor of layout {output.layout}{part}; the contract asks for an ordinary one")
    if output.dtype not in wire.DTYPES or output.dim() > wire.MAX_RANK:
        raise BadResult(f"returned a {output.dim()}-dimensional tensor of {output.dtype}{part}")
    result: Tensor = output
    return result


def _describe_result(value: Any) -> str:
    """What a call returned, in words; of a dict or a dataclass with the names of its parts: "a dict with out, weights"."""
    names = _names_of_parts(value)
    if not names:
        return (
            f"a tuple of {len(value)}"
            if isinstance(value, tuple) and hasattr(value, "_fields")
            else describe_type(value)
        )
    return f"a {'dict' if isinstance(value, dict) else 'dataclass'} with {', '.join(names)}"[:200]


def describe_type(value: Any) -> str:
    """A value's type in words: "None", "a tuple of 2", "an object of type numpy.ndarray"."""
    if value is None:
        return "None"
    if type(value) is Tensor:
        return "one tensor"
    if type(value) in (tuple, list, dict):
        return f"a {type(value).__name__} of {len(value)}"
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}"[:200]


def _names_of_parts(value: Any) -> list[str]:
    """The keys of a dict, or the fields of a dataclass, where each of them is a name."""
    names = list(value) if isinstance(value, dict) else list(getattr(type(value), "__dataclass_fields__", ()))
    return names if all(isinstance(name, str) and name.isidentifier() for name in names) else []


def with_sharing(result: Tensor, given: list[Tensor]) -> tuple[Tensor, int]:
    """A result, with a flag that says whether it shares memory with an input."""
    if result.device.type != "cpu" or result.numel() == 0:
        return result, 0
    pointer = result.untyped_storage().data_ptr()
    shares = any(
        value.device.type == "cpu" and value.numel() and value.untyped_storage().data_ptr() == pointer
        for value in given
    )
    return result, wire.SHARES_INPUT if shares else 0


def cross_entropy_gradient(logits: Tensor, labels: Tensor) -> Tensor:
    """The gradient of the mean cross-entropy with respect to the logits (N, classes)."""
    if logits.dim() != 2 or len(logits) != len(labels):
        raise BadResult(f"returned shape {tuple(logits.shape)}; expected logits for {len(labels)} samples")
    right = torch.zeros_like(logits).scatter_(1, labels[:, None], 1.0)
    return (logits.detach().softmax(dim=1) - right) / len(labels)


def gradients(
    results: Sequence[Tensor], leaves: list[Tensor], cotangents: Sequence[Tensor | None]
) -> list[tuple[Tensor, int]]:
    """The gradient of each leaf, with the flag ABSENT if it has none. Raises BadResult.

    Each of `results` has a cotangent, or None if nothing is differentiated there.
    """
    differentiated = []
    for result, cotangent in zip(results, cotangents, strict=True):
        if cotangent is None:
            continue
        if result.shape != cotangent.shape:
            raise BadResult(f"returned shape {tuple(result.shape)}; expected {tuple(cotangent.shape)}")
        if result.requires_grad:
            differentiated.append((result, cotangent))
    for leaf in leaves:
        leaf.grad = None
    if differentiated:
        # Backward from a scalar: the first `grad_outputs` makes torch import sympy, which takes half a second.
        with torch.enable_grad():  # the attempt may have switched gradients off
            # With backward, as in training: a reentrant checkpoint refuses torch.autograd.grad.
            first, *others = ((part * cotangent.to(part.dtype)).sum() for part, cotangent in differentiated)
            _backward(sum(others, start=first))
    found = [(leaf.detach(), wire.ABSENT) if leaf.grad is None else (leaf.grad.detach(), 0) for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    return found
