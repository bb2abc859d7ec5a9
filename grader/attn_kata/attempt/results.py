"""What an attempt returned: whether it is what a reply can tell, what it shares with an input, its gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from attn_kata.protocol import wire

_backward = torch.autograd.backward  # taken before any attempt runs: what an attempt does to torch later does not reach it


class BadResult(Exception):
    """The attempt returned something that is not one plain tensor."""


def one_tensor(output: Any) -> Tensor:
    """What a call returned, where it is what the contract asks for. Raises BadResult."""
    if type(output) not in (Tensor, nn.Parameter):
        raise BadResult(f"returned {kind(output)}; the contract asks for one torch.Tensor")
    if output.layout is not torch.strided or output.is_quantized or output.is_nested:
        raise BadResult(f"returned a tensor of layout {output.layout}; the contract asks for an ordinary one")
    if output.dtype not in wire.DTYPES or output.dim() > wire.MAX_RANK:
        raise BadResult(f"returned a {output.dim()}-dimensional tensor of {output.dtype}")
    result: Tensor = output
    return result


def kind(value: Any) -> str:
    """What a value is, in words: "None", "a tuple of 2", "an object of type numpy.ndarray"."""
    if value is None:
        return "None"
    if type(value) in (tuple, list, dict):
        return f"a {type(value).__name__} of {len(value)}"
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}"[:200]


def with_sharing(result: Tensor, given: list[Tensor]) -> tuple[Tensor, int]:
    """A result and the flag that says whether it shares memory with an input."""
    if result.device.type != "cpu" or result.numel() == 0:
        return result, 0
    pointer = result.untyped_storage().data_ptr()
    shares = any(
        value.device.type == "cpu" and value.numel() and value.untyped_storage().data_ptr() == pointer
        for value in given
    )
    return result, wire.SHARES_INPUT if shares else 0


def of_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The gradient of the mean cross-entropy by the logits (N, classes)."""
    if logits.dim() != 2 or len(logits) != len(labels):
        raise BadResult(f"returned shape {tuple(logits.shape)}; expected logits for {len(labels)} samples")
    right = torch.zeros_like(logits).scatter_(1, labels[:, None], 1.0)
    return (logits.detach().softmax(dim=1) - right) / len(labels)


def gradients(result: Tensor, leaves: list[Tensor], cotangent: Tensor) -> list[tuple[Tensor, int]]:
    """The gradient for each leaf; ABSENT where none reaches it. Raises BadResult."""
    if result.shape != cotangent.shape:
        raise BadResult(f"returned shape {tuple(result.shape)}; expected {tuple(cotangent.shape)}")
    for leaf in leaves:
        leaf.grad = None
    if result.requires_grad:
        # A scalar, because the first `grad_outputs` that torch is given makes it import half a second's worth of sympy.
        with torch.enable_grad():  # an attempt may have switched it off for itself
            # As training does it: torch.autograd.grad, which leaves no .grad behind, is refused by a reentrant checkpoint.
            _backward((result * cotangent.to(result.dtype)).sum())
    found = [(leaf.detach(), wire.ABSENT) if leaf.grad is None else (leaf.grad.detach(), 0) for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    return found
