"""The order in which to learn: katas in groups, what to pass before which, and what comes next.

A kata's prerequisites, and theirs, are *behind* whoever passed it: they are not suggested again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from attn_kata.catalog import Kata


def groups(katas: Sequence[Kata]) -> dict[str, list[Kata]]:
    """The katas by group, in the order given but each after those that it builds on; the groups by their first kata."""
    below = foundations(katas)
    made: dict[str, list[Kata]] = {}
    for kata in katas:
        members = made.setdefault(kata.group, [])
        later = [place for place, other in enumerate(members) if kata.slug in below[other.slug]]
        members.insert(later[0] if later else len(members), kata)
    return made


def foundations(katas: Sequence[Kata]) -> dict[str, frozenset[str]]:
    """For each kata all that it builds on: its prerequisites, theirs, and so on."""
    direct = {kata.slug: kata.prerequisites for kata in katas}

    def gather(slug: str, seen: set[str]) -> set[str]:
        for before in direct.get(slug, ()):
            if before not in seen:
                seen.add(before)
                gather(before, seen)
        return seen

    return {slug: frozenset(gather(slug, set())) for slug in direct}


def behind(katas: Sequence[Kata], passed: Collection[str]) -> set[str]:
    """What was passed, and everything that it builds on."""
    below = foundations(katas)
    return {*passed}.union(*(below[slug] for slug in passed if slug in below))


def following(katas: Sequence[Kata], passed: Collection[str], *, besides: str | None = None) -> Kata | None:
    """The kata to start next: the first that is not behind, and whose prerequisites are. None when nothing is left.

    `katas` are in the order of `list`. `besides` is left out: it is open already.
    """
    done = behind(katas, passed)
    left = [kata for kata in katas if kata.slug not in done and kata.slug != besides]
    return next((kata for kata in left if done.issuperset(kata.prerequisites)), left[0] if left else None)


def missing(kata: Kata, done: Collection[str]) -> list[str]:
    """The prerequisites that are not behind yet."""
    return [slug for slug in kata.prerequisites if slug not in done]


def problems(kata: Kata, katas: Sequence[Kata]) -> Iterator[str]:
    """A sentence for each prerequisite of `kata` that cannot be one."""
    below: Mapping[str, frozenset[str]] = foundations(katas)
    for slug in kata.prerequisites:
        if slug not in below:
            yield f"kata.toml: prerequisites: there is no kata '{slug}'"
        elif slug == kata.slug or kata.slug in below[slug]:
            yield f"kata.toml: prerequisites: '{slug}' needs {kata.slug} itself"
