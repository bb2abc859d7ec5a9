"""The cases of a property: sizes from the smallest up, and random inputs in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor


class Sizes:
    """Named sizes of one case, read as attributes: `Sizes(B=2, Tq=3).Tq` is 3.

    A value is an int, or a word for something else that varies between cases (`dropout="0.5"`). The report and pytest show a
    case as its sizes. Reading a size that is not there raises AttributeError.
    """

    def __init__(self, **sizes: int | str) -> None:
        self._sizes = sizes
        self.__dict__.update(sizes)  # found like any attribute, which is quicker than `__getattr__`

    def __getattr__(self, name: str) -> int:
        """What is asked for a size that is not there; it also tells mypy that every other is an int."""
        raise AttributeError(f"this case has no size {name}; it has {', '.join(self.__dict__.get('_sizes', ()))}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def as_dict(self) -> dict[str, int | str]:
        """The sizes by name, as the report shows them."""
        return dict(self._sizes)

    def __repr__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self._sizes.items())


class Drawn:
    """A case whose sizes are drawn anew for each seed, each from a range: `Drawn(B=(1, 4), D=(1, 90))`.

    `make` makes the Sizes, if they depend on one another or other values go with them. The sizes depend on nothing but the
    seed of the grading, the property and the case.
    """

    def __init__(self, make: Callable[..., Sizes] = Sizes, **ranges: tuple[int, int]) -> None:
        self._make, self._ranges = make, ranges

    def draw(self, seed: int) -> Sizes:
        """The sizes for this seed. Both ends of a range may be drawn."""
        generator = torch.Generator().manual_seed(seed)
        drawn: dict[str, Any] = {
            name: int(torch.randint(least, most + 1, (), generator=generator))
            for name, (least, most) in self._ranges.items()
        }
        return self._make(**drawn)

    def __repr__(self) -> str:
        return "drawn"


def randn(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """A tensor of this shape with standard normal numbers, drawn in float64 and rounded to `dtype`.

    The numbers depend on the seed of the grading, the property and the case, and on nothing else.
    """
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


def flags_first(samples: int, length: int) -> Tensor:
    """(samples, length) bool: True first, in half of the places, in 1, in all, in all but one, and again. No row is False."""
    pattern = ((length + 1) // 2, 1, length, max(1, length - 1))
    return torch.arange(length) < torch.tensor([pattern[i % 4] for i in range(samples)])[:, None]


def flags_with_gaps(samples: int, length: int) -> Tensor:
    """(samples, length) bool: True in every other place, from the second on, then from the first on, and again.

    With a length of 1 all are True: no row is False.
    """
    if length == 1:
        return flags_first(samples, length)
    return (torch.arange(length) + torch.arange(samples)[:, None]) % 2 == 1
