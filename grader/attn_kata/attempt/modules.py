"""What is done to a module that an attempt built: its parameters by name, weights into them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attn_kata.protocol import wire


def named_parameters(module: nn.Module, contract: tuple[str, ...] = ()) -> list[tuple[str, nn.Parameter]]:
    """A module's parameters in the order of their names, each once: under the contract's name, or the one most like it.

    So layers may also be kept in a list, and a weight in an attribute, while one layer under two of the contract's names is
    one layer.
    """
    names: dict[int, str] = {}
    held = dict(module.named_parameters(remove_duplicate=False))

    def rank(name: str) -> tuple[bool, bool, bool, int]:
        """Lower for the contract's names, then for what a layer holds, is called by names and not by places, and is near."""
        *inside, layer, weight = ("", *name.split("."))
        owner = module.get_submodule(name.rpartition(".")[0])
        return name not in contract, bool(owner._modules), layer.isdigit() or weight.isdigit(), len(inside)

    for name, value in held.items():
        known = names.get(id(value))
        if known is None or rank(name) < rank(known):
            names[id(value)] = name
    return sorted((name, held[name]) for name in names.values())


def parameters(named: list[tuple[str, nn.Parameter]]) -> tuple[tuple[str, ...], tuple[tuple[Tensor, int], ...]]:
    """Parameters as a reply tells them: their names, and their shapes alone."""
    return tuple(name for name, _ in named), tuple((value.detach(), wire.ABSENT) for _, value in named)


def copy_in(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Copy weights into a module's parameters, after converting it to their dtype."""
    dtype = next(iter(weights.values())).dtype
    held = dict(module.named_parameters(remove_duplicate=False))
    if any(value.dtype is not dtype for value in (*held.values(), *module.buffers())):
        module.to(dtype)  # which keeps the parameters, unless the module has its own way
        if any(value.dtype is not dtype for value in held.values()):
            held = dict(module.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for name, weight in weights.items():
            held[name].copy_(weight)
