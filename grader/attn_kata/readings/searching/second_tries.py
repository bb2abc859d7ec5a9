"""What is tried once more in another way: on the processor, without casts to half precision, by sample, by token."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from attn_kata.readings.candidates import building, positions
from attn_kata.readings.searching.behaviour import Ranked
from attn_kata.readings.searching.search import MOST_MISTAKES

if TYPE_CHECKING:
    from attn_kata.readings.searching.definition_search import DefinitionSearch

_GPU = re.compile(r"\bCUDA\b|NVIDIA|cuda")
_HALF = re.compile(r"\.half\(\)|float16")
# A batch of one: `expand(1, T, D)`, but no mask (1, 1, T, T) and no positions (1, T).
_ONE_SAMPLE = re.compile(
    r"^(?!.*(?:tri[lu]|arange|mask|pos|buffer)).*(?:expand|view|reshape|repeat)\(\s*[(\[]?1,\s*(?!1\s*,)", re.M
)


def wants_gpu(one: DefinitionSearch, found: Ranked | None, tried: list[str]) -> bool:
    """Whether it gives no answer, and the code, or what its call raises, speaks of a GPU that is not here."""
    if found is not None and found.answers:
        return False
    asked = [] if found is None else [one.search.unmasked, one.search.masked]
    raised = [text for ask in asked for text in one.search.raised(found.reading, ask)]  # type: ignore[union-attr]
    return any(map(_GPU.search, (*tried, *raised)))


def is_in_half(one: DefinitionSearch, found: Ranked | None, _: list[str]) -> bool:
    """Whether no known mistake explains it, and the code casts to half precision."""
    return (found is None or found.mistakes > MOST_MISTAKES) and _HALF.search(one.code) is not None


def is_of_one_sample(one: DefinitionSearch, found: Ranked | None, _: list[str]) -> bool:
    """Whether it gives no answer, with or without a mask, and the code sets the size of the batch."""
    if not one.contract.is_module or (found is not None and found.answers):
        return False
    if building.sets_batch(one.definition, one.search.structure):
        return True
    raises_without = found is None or found.reading.mask == "none"  # a mask that is laid on the heads is a mistake
    return raises_without and _ONE_SAMPLE.search(one.code) is not None


def is_by_token(one: DefinitionSearch, found: Ranked | None, _: list[str]) -> bool:
    """Whether it gives no answer, and keeps keys from call to call: it may take one token at a time."""
    silent = found is None or not found.answers
    return silent and one.contract.is_module and one.contract.is_self and bool(positions.caches(one.definition))


# The field of the reading that each of them sets, in the order in which they are tried.
WAYS: dict[str, Callable[[DefinitionSearch, Ranked | None, list[str]], bool]] = {
    "processor": wants_gpu,
    "full_precision": is_in_half,
    "one_sample": is_of_one_sample,
    "by_token": is_by_token,
}
