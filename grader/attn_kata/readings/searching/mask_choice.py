"""Chooses how a mask is passed, by behaviour: the form under which the fewest mistakes explain what the code computes.

What explains the code without a mask is known by then, and is only looked for again. A shape of mask that does not fit the
scores is left out at once, and so are other types of a mask that the code has taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from attn_kata.readings.asking.limits import KEYS
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching.behaviour import (
    Asked,
    Ranked,
    about_sizes,
    answers,
    assuming,
    explanations,
    fits,
    only,
    partly,
    places,
)

MOST_EXPLAINED = 12  # forms for which a mistake of the mask is looked for


@dataclass(kw_only=True)
class MaskChoice:
    """One choice. `ask` gives what the code answers to masked probes, and `unmasked` is what it answers without a mask."""

    ask: Callable[[Reading], Asked]
    unmasked: Asked
    none_explains: int  # the number of mistakes to give where nothing explains the code
    of_tokens: bool  # whether queries and keys may be the same tokens, so that a mask of these may hide both
    if_square: bool  # whether that may be only where the code takes as many queries as keys

    def best(self, forms: Iterable[Reading]) -> Ranked | None:
        """The form that needs the fewest mistakes; one that answers where nothing explains; None if all raise."""
        sets = explanations(self.unmasked, 1) or explanations(self.unmasked, 2)
        known = places(self.unmasked, sets[0]) if sets else None
        usable = fits if fits(self.unmasked) else answers  # what is returned may be wrong without a mask, too
        fitting: list[tuple[Reading, Asked]] = []
        others: list[Reading] = []
        useless: set[str] = set()
        told: set[tuple[str, str]] = set()
        for one in forms:
            if one.shape in useless or (one.shape, one.mask) in told:
                continue
            asked = self.ask(one)
            if _is_explained(asked, sets):
                return Ranked(mistakes=len(sets[0]), reading=one)
            if not usable(asked):  # neither does another mask of this shape
                useless |= {one.shape} if answers(asked) or about_sizes(asked) else set()
                others.append(one)
                continue
            told |= set() if partly(asked) else {(one.shape, one.mask)}
            fitting.append((one, asked))
        fitting.sort(key=lambda each: partly(each[1]))
        found = self._with_one_more(fitting[:MOST_EXPLAINED], known)
        of_tokens = self._of_tokens(fitting) if self.of_tokens else []
        hiding = next((one for one, asked in of_tokens if _is_explained(asked, sets)), None)
        if hiding is not None:
            return Ranked(mistakes=len(sets[0]), reading=hiding)
        found = found or self._with_one_more(of_tokens[:MOST_EXPLAINED], known)
        if found is not None:
            return found
        unexplained = [one for one, _ in fitting] or others
        return (
            Ranked(mistakes=self.none_explains, reading=unexplained[0], answers=bool(fitting)) if unexplained else None
        )

    def _of_tokens(self, fitting: list[tuple[Reading, Asked]]) -> list[tuple[Reading, Asked]]:
        """The forms of a mask of keys, as masks of the tokens, which hide the queries that are padding, too."""
        hiding = [
            replace(one, hides_queries=True)
            for one, _ in fitting
            if one.shape in KEYS and (one.square or not self.if_square)
        ]
        return [(one, self.ask(one)) for one in hiding]

    @staticmethod
    def _with_one_more(
        fitting: list[tuple[Reading, Asked]], known: tuple[tuple[str, int], ...] | None
    ) -> Ranked | None:
        if known is None:
            return None
        alike: dict[tuple[str, bool], Reading] = {}  # by meaning: a mask of another shape says the same
        for one, asked in fitting:
            if alike and one.shape != next(iter(alike.values())).shape:
                continue  # a tie is looked for among the masks of one shape
            if (one.mask, one.causal) not in alike and explanations(assuming(asked, known), 1):
                alike[one.mask, one.causal] = one
        first, *others = alike.values() or (None,)
        if first is None:
            return None
        ties = tuple(one for one in others if one.mask != first.mask)
        return Ranked(mistakes=len(known) + 1, reading=first, ties=ties)


def _is_explained(asked: Asked, sets: list[frozenset[str]]) -> bool:
    """Whether one of the sets of mistakes that explain the code without a mask explains it with this one, too."""
    return any(each in explanations(only(asked, each), len(each)) for each in sets)
