"""Rotary position embedding (Su et al., "RoFormer", 2021): pair i holds columns 2i, 2i + 1, and turns by p * base ** (-2i / D).

A pipeline that turns vectors sets `positions` (T,) or (B, T), `base`, and three rules that its stages replace:

    frequencies    (D, base) -> (D / 2,), one for each pair
    places         (positions, tensor) -> (..., T, 1), what is multiplied by the frequencies
    turn           (tensor, cos, sin) -> tensor, with cos and sin (..., T, D / 2)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attn_kata.diagnosis.pipeline import Stage, State

Turn = Callable[[Tensor, Tensor, Tensor], Tensor]


def rotated(state: State, x: Tensor) -> Tensor:
    """`x` (B, H, T, D) turned by the rules of the state."""
    angles = state.places(state.positions, x) * state.frequencies(x.shape[-1], state.base) * getattr(state, "unit", 1.0)
    out: Tensor = state.turn(x, angles.cos(), angles.sin())
    return out


def rotary_rules(**rules: Any) -> Stage:
    """The stage that sets rules of the rotation: `frequencies`, `places`, `turn`, `base`, `unit` (a factor of angles)."""

    def stage(state: State) -> None:
        for name, rule in rules.items():
            setattr(state, name, rule)

    return stage


def frequencies(first: float = 0.0, step: float = 2.0) -> Callable[[int, float], Tensor]:
    """base ** -((first + step * i) / D) for pair i: right with 0 and 2."""

    def rule(size: int, base: float) -> Tensor:
        exponents = first + step * torch.arange(size // 2, dtype=torch.float64)
        made: Tensor = float(base) ** (-exponents / size)
        return made

    return rule


def frequencies_to_the_end(size: int, base: float) -> Tensor:
    """base ** -(i / (D / 2 - 1)): from 1 to exactly 1 / base, as in some code for sinusoids."""
    made: Tensor = float(base) ** -torch.linspace(0, 1, size // 2, dtype=torch.float64)
    return made


def frequencies_of_columns(step: float) -> Callable[[int, float], Tensor]:
    """base ** -(step * j / D) for column j, (D,): the two columns of a pair turn by different angles."""

    def rule(size: int, base: float) -> Tensor:
        made: Tensor = float(base) ** (-step * torch.arange(size, dtype=torch.float64) / size)
        return made

    return rule


def own_places(positions: Tensor, x: Tensor) -> Tensor:
    """(T,) -> (T, 1), (B, T) -> (B, 1, T, 1): right."""
    return (positions if positions.dim() == 1 else positions[:, None]).double()[..., None]


def moved_places(by: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Positions counted from `by`."""
    return lambda positions, x: own_places(positions + by, x)


def places_of_tokens(positions: Tensor, x: Tensor) -> Tensor:
    """0 to T - 1, whatever the positions are."""
    return torch.arange(x.shape[-2], dtype=torch.float64)[:, None]


def places_of_tokens_in_a_row(positions: Tensor, x: Tensor) -> Tensor:
    """0 to T - 1 where all samples have the same positions, whatever these are; right for positions of each sample."""
    return places_of_tokens(positions, x) if positions.dim() == 1 else own_places(positions, x)


def places_of_heads(positions: Tensor, x: Tensor) -> Tensor:
    """The number of the head."""
    return torch.arange(x.shape[1], dtype=torch.float64)[:, None, None]


def places_of_the_first_sample(positions: Tensor, x: Tensor) -> Tensor:
    """The first sample's positions for all samples."""
    return own_places(positions if positions.dim() == 1 else positions[0], x)


def turn_neighbours(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pairs (2i, 2i + 1): right."""
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1).flatten(-2)


def turn_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pairs (i, i + D / 2)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def turn_overwriting_first(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The first of a pair is overwritten before the second is made of it."""
    first, second = x[..., 0::2], x[..., 1::2]
    first = first * cos - second * sin
    return torch.stack([first, first * sin + second * cos], dim=-1).flatten(-2)


def turn_overwriting_second(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The second of a pair is overwritten before the first is made of it."""
    first, second = x[..., 0::2], x[..., 1::2]
    second = first * sin + second * cos
    return torch.stack([first * cos - second * sin, second], dim=-1).flatten(-2)


def turn_halves_into_neighbours(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pairs (i, i + D / 2), the results beside each other."""
    first, second = turn_halves(x, cos, sin).chunk(2, dim=-1)
    return torch.stack([first, second], dim=-1).flatten(-2)


def turn_without_minus(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x0 cos + x1 sin, x0 sin + x1 cos: no rotation."""
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.stack([first * cos + second * sin, first * sin + second * cos], dim=-1).flatten(-2)


def turn_without_plus(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x0 cos - x1 sin, x1 cos - x0 sin: no rotation."""
    return turn_without_minus(x, cos, -sin)


def turn_exchanged(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Cosine and sine in each other's place."""
    return turn_neighbours(x, sin, cos)


def turn_and_concatenate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pairs (2i, 2i + 1), the results in two halves instead of beside each other."""
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def _half_turned(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


def turn_halves_with_doubled_angles(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Angles for neighbours (a0, a0, a1, a1), columns exchanged by halves."""
    return x * cos.repeat_interleave(2, -1) + _half_turned(x) * sin.repeat_interleave(2, -1)


def turn_columns(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Pairs (2i, 2i + 1), with an angle for each column."""
    exchanged = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    return x * cos + exchanged * sin


def turn_neighbours_with_repeated_angles(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Angles for halves (a0, a1, a0, a1), columns exchanged as neighbours."""
    exchanged = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    return x * torch.cat([cos, cos], -1) + exchanged * torch.cat([sin, sin], -1)
