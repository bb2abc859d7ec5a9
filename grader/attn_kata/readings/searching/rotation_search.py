"""The search for the reading of code that turns vectors by their positions."""

from __future__ import annotations

from attn_kata.readings.candidates import rotations
from attn_kata.readings.choice import Chosen, NotRead
from attn_kata.readings.reading import Reading, with_flags
from attn_kata.readings.searching.behaviour import Asked, Ranked, answers, partly
from attn_kata.readings.searching.search import MOST_DEFINITIONS, MOST_MISTAKES, Asking, Search
from attn_kata.readings.source.structure import Definition


def run(search: Search) -> Chosen | NotRead:
    """The reading of a source that turns vectors by their positions."""
    wanted = search.given.get("entry")
    every = rotations.find(search.structure)
    named = search.structure.find(str(wanted)) if wanted else None
    found = ([named] if named is not None else []) if wanted else every

    def turning(reading: Reading) -> Asked:
        limits = search.limits(reading)
        return search.ask(reading, limits, [limits.pipeline(one) for one in search.pipelines])

    best: Ranked | None = None
    for definition in found[:MOST_DEFINITIONS]:
        ranked = _read(search, definition, turning)
        if ranked is not None and (best is None or ranked.mistakes < best.mistakes):
            best = ranked
        if best is not None and best.mistakes <= MOST_MISTAKES:
            break
    others = [one.name for one in every]
    if best is None:
        if not found:
            search.tried.append("nothing in the file looks like a rotation by positions")
        return NotRead(tried=tuple(search.tried), candidates=tuple(others), nothing=not found)
    return search.chosen(
        best,
        candidates=tuple(one for one in others if one != best.reading.entry),
        doubt="" if best.answers else f"every call that was tried raises{search.why([best.reading], turning)}",
    )


def _read(search: Search, definition: Definition, turning: Asking) -> Ranked | None:
    """The best reading of one definition."""
    ways = rotations.readings(definition, search.structure, search.contract.kata)
    own = list(dict.fromkeys(with_flags(one, search.given) for one in ways))
    ranked = search.best(own, turning)
    if (ranked is None or not _takes_both(turning(ranked.reading))) and "positions" not in search.given:
        # Where it raises for positions by sample, it is given those of one sample after the other.
        each = search.best(rotations.by_sample(own), turning)
        ranked = each if each is not None and (ranked is None or each.mistakes < ranked.mistakes) else ranked
    if ranked is None:
        search.tried.append(f"{definition.name}: every call that was tried raises{search.why(own, turning)}")
    return search.in_float32(ranked, turning)


def _takes_both(asked: Asked) -> bool:
    """Whether code answers for positions of all samples and by sample."""
    return answers(asked) and not partly(asked)
