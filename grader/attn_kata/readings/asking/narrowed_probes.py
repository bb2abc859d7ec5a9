"""The probes of a kata as code can be asked them under a reading: with as many queries as keys, with one width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attn_kata.diagnosis.pipeline import Probe


def of_rank(dims: int, probes: Callable[[], Sequence[Probe]]) -> list[Probe]:
    """The probes with at least so many dimensions. Ones that are added have size 2: along size 1 every softmax gives 1."""
    found = []
    for one in probes():
        args = one.args
        while isinstance(args[0], Tensor) and args[0].dim() < dims:
            wider = (isinstance(part, Tensor) and part.is_floating_point() for part in args)
            args = tuple(
                torch.stack([part, part / 2]) if wide else part for part, wide in zip(args, wider, strict=True)
            )
        found.append(replace(one, args=args))
    return found


def as_square(probe: Probe) -> Probe | None:
    """The probe with as many queries as keys; None where its mask would leave a query without a key then.

    Those that are square already may have as many tokens as a head has numbers: a scale by their number would pass.
    """
    count = min(one.shape[-2] for one in probe.args[:2] if isinstance(one, Tensor))  # a self-attention may have no mask
    args = []
    for one in probe.args:
        if isinstance(one, Tensor) and one.dim() > 1:
            one = one[..., :count, :] if one.is_floating_point() else one[..., :count, :count]
            if not one.is_floating_point() and not bool(one.any(-1).all()):
                return None
        args.append(one)
    sizes = {**probe.sizes, **dict.fromkeys({"Tq", "Tk"} & set(probe.sizes), count)}
    return replace(probe, args=tuple(args), sizes=sizes)


def with_fewer_queries(probe: Probe) -> Probe:
    """The probe with no more queries than keys: the first of them, as the last positions, would see no key."""
    queries, keys = (one.shape[-2] for one in probe.args[:2])
    if queries <= keys:
        return probe
    kept = max(1, keys - 2)
    args = [one[..., :kept, :] if isinstance(one, Tensor) and one.shape[-2] == queries else one for one in probe.args]
    return replace(probe, args=tuple(args), sizes={**probe.sizes, "Tq": kept})


def rounded_up(size: int, multiple: int) -> int:
    """The next multiple of a number that is as large as a size."""
    return -(-size // multiple) * multiple


def as_wide_as(probe: Probe, width: int, place: int, *, size: int, but_for: int | None) -> Probe:
    """The probe of a module with heads with another width, which stands at this place of its build, and this size of a head.

    `but_for`: the place of an input that has a width of its own.
    """
    before = probe.build[place]
    if width == before:
        return probe
    args = tuple(
        one.repeat(*[1] * (one.dim() - 1), -(-width // before))[..., :width].contiguous()
        if isinstance(one, Tensor) and one.is_floating_point() and number != but_for
        else one
        for number, one in enumerate(probe.args)
    )
    sizes = {**probe.sizes, "E": width, **({"D": size} if "D" in probe.sizes else {})}
    build = (*probe.build[:place], width, *probe.build[place + 1 :])
    return replace(probe, args=args, build=build, sizes=sizes)


def with_keys_of(probe: Probe, sizes: int) -> Probe:
    """The probe of a learned score whose keys are compared as they are: as wide as what the query becomes.

    That is (I, C, D), with D as large as C; or (I, C), with queries as wide as keys.
    """
    query, key = probe.build[:2]
    if sizes > 2:
        return replace(probe, build=(query, key, key), sizes={**probe.sizes, "hidden_dim": key})
    return of_one_width(probe)


def of_one_width(probe: Probe) -> Probe:
    """The probe of a learned score built with (I, C, D), all and the values as wide as its keys."""
    key = probe.build[1]
    q, k, v = (  # (B, T, width)
        one.repeat(1, 1, -(-key // one.shape[-1]))[..., :key].contiguous() for one in probe.args[:3]
    )
    sizes = {**probe.sizes, **dict.fromkeys(("query_dim", "hidden_dim", "Dv"), key)}
    return replace(probe, build=(key,) * len(probe.build), args=(q, k, v, *probe.args[3:]), sizes=sizes)


def of_one_size(probe: Probe, *, wide: int = 1, values: int = 1) -> Probe:
    """The probe of a module built with (I, D, V, …), for x and values so many times as wide as keys."""
    size = probe.build[1]
    x = probe.args[0]  # (..., T, I)
    repeated = x.repeat(*[1] * (x.dim() - 1), -(-wide * size // x.shape[-1]))[..., : wide * size].contiguous()
    sizes = {**probe.sizes, **dict.fromkeys({"Din", "E"} & set(probe.sizes), wide * size), "Dv": values * size}
    build = (wide * size, size, values * size, *probe.build[3:])
    return replace(probe, args=(repeated, *probe.args[1:]), build=build, sizes=sizes)


def with_values_as_keys(probe: Probe) -> Probe:
    """The probe of a module built with (I, D, V, …), for values as wide as keys."""
    size = probe.build[1]
    build = (probe.build[0], size, size, *probe.build[3:])
    return replace(probe, build=build, sizes={**probe.sizes, "Dv": size})


def is_of_one_width(args: tuple[Any, ...]) -> bool:
    """Whether the context is as wide as x, or the keys as the query."""
    x, context = args[:2]
    return bool(x.shape[-1] == context.shape[-1])


def alike(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a function with values (..., Tk, Dv) as wide as the keys (..., Tk, D)."""
    width = args[1].shape[-1]
    values = args[2].repeat(*[1] * (args[2].dim() - 1), -(-width // args[2].shape[-1]))[..., :width]
    return (*args[:2], values.contiguous(), *args[3:])
