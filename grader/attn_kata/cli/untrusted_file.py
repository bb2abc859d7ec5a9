"""The rules of `--untrusted`: another person's file needs at least tier 1, and inputs that nobody knows in advance."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from attn_kata.errors import UsageError

LEAST_TIER = 1
_NEXT_STEP = "Grade it on Linux with Landlock and seccomp. If you trust the file like your own, leave --untrusted out"


def seed(untrusted: bool, chosen: int | None) -> int:
    """The chosen seed, or 0. For another person's file a random seed, so that it cannot contain the answers.

    The report shows the seed.
    """
    if chosen is not None:
        return chosen
    return secrets.randbelow(2**31) if untrusted else 0


@contextmanager
def refused_below_tier_1(untrusted: bool, tier: int | None) -> Iterator[None]:
    """Raises UsageError when the isolation is too weak, before any code of the file runs."""
    from attn_kata.engine.client import TooWeak

    if untrusted and tier is not None and tier < LEAST_TIER:
        raise UsageError(
            f"--untrusted needs isolation of tier {LEAST_TIER} or more, but --tier is {tier}.",
            next_step="Leave --tier out. If you trust the file like your own, leave --untrusted out",
        )
    try:
        yield
    except TooWeak as weak:
        raise UsageError(
            f"Another person's file needs isolation of tier {LEAST_TIER} or more; here is only tier 0. {weak}".strip(),
            next_step=_NEXT_STEP,
        ) from weak
