"""What a refused result was, read from the sentence that the attempt's process says of it."""

from __future__ import annotations

import re

_TUPLE = re.compile(r"returned a (?:tuple|list) of (\d{1,4})")
_NAMES = re.compile(r"returned a (?:dict|dataclass) with ((?:[^\W\d]\w*, )*[^\W\d]\w*)")


def parts_of(said: str) -> tuple[str, ...]:
    """The places in a returned tuple, as numbers, or the names in a returned dict or dataclass; () for anything else."""
    found = _TUPLE.search(said)
    if found is not None:
        return tuple(map(str, range(int(found[1]))))
    found = _NAMES.search(said.partition(" as ")[0])
    return tuple(found[1].split(", ")) if found is not None else ()
