"""Reads and sets the parameters of a module that an attempt built."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from attn_kata.protocol import wire


def held_parameters(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Parameter]]:
    """Every parameter under every name that it has, as `nn.Module.named_parameters(remove_duplicate=False)`, in less time."""
    for name, value in module._parameters.items():
        if value is not None:
            yield prefix + name, value
    for name, part in module._modules.items():
        if part is not None:
            yield from held_parameters(part, f"{prefix}{name}.")


def named_parameters(module: nn.Module, contract: tuple[str, ...] = ()) -> list[tuple[str, nn.Parameter]]:
    """A module's parameters, sorted by name, each once. A parameter with several names gets the one nearest to the contract's.

    So an attempt may also keep its layers in a list, or a weight in an attribute. A layer that has two of the contract's names
    still counts as one.
    """
    names: dict[int, str] = {}
    held = dict(held_parameters(module))

    def rank(name: str) -> tuple[bool, bool, bool, int]:
        """Lower is better: a name of the contract; then a parameter of a layer, a name without numbers, a short path."""
        *inside, layer, weight = ("", *name.split("."))
        owner = module.get_submodule(name.rpartition(".")[0])
        return name not in contract, bool(owner._modules), layer.isdigit() or weight.isdigit(), len(inside)

    for name, value in held.items():
        known = names.get(id(value))
        if known is None or rank(name) < rank(known):
            names[id(value)] = name
    return sorted((name, held[name]) for name in names.values())


def parameters(named: list[tuple[str, nn.Parameter]]) -> tuple[tuple[str, ...], tuple[tuple[Tensor, int], ...]]:
    """Parameters for a reply: their names, and tensors of which only the shapes are sent."""
    return tuple(name for name, _ in named), tuple((value.detach(), wire.ABSENT) for _, value in named)


def copy_weights(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Convert a module to the dtype of the weights, and copy them into its parameters."""
    dtype = next(iter(weights.values())).dtype
    copied = set()
    held = dict(held_parameters(module))
    parts = list(module.modules())
    buffers = [value for part in parts for value in part._buffers.values() if value is not None]
    if any(value.dtype is not dtype for value in (*held.values(), *buffers)):
        if not buffers and all(map(_converts_like_torch, parts)):
            for name, value in held.items():  # the same as `to` and a copy, which take three times as long
                weight = weights.get(name)
                same_form = weight is not None and value.shape == weight.shape and value.is_contiguous()
                if weight is None or value.dtype is dtype or not same_form:
                    value.data = value.data.to(dtype)
                else:
                    value.data = weight.clone(memory_format=torch.contiguous_format)
                    copied.add(name)
        else:
            if any(value.is_complex() for value in (*held.values(), *buffers)):
                module._apply(lambda value: _converted(value, dtype))  # `to` makes them real: its turns are lost
            else:
                module.to(dtype)  # this keeps the parameter objects, unless the module overrides it
            if any(value.dtype is not dtype for value in held.values()):
                held = dict(held_parameters(module))
    with torch.no_grad():
        for name, weight in weights.items():
            if name not in copied:
                held[name].copy_(weight)


def _converted(value: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor in this precision. What is complex stays complex."""
    if value.is_complex():
        return value.to(dtype.to_complex())
    return value.to(dtype) if value.is_floating_point() else value


def _converts_like_torch(module: nn.Module) -> bool:
    """Whether the module converts its parameters, all floating ones, as every module does by default."""
    kind = type(module)
    floating = all(value is None or value.is_floating_point() for value in module._parameters.values())
    return floating and kind.to is nn.Module.to and kind._apply is nn.Module._apply
