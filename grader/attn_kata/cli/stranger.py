"""What `--untrusted` demands: another person's file is not graded below tier 1, nor on inputs that could be known before."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from attn_kata.errors import UsageError

LEAST_TIER = 1
_WAY_OUT = "Grade it on Linux with Landlock and seccomp, or, trusting it as your own, without --untrusted"


def seed(untrusted: bool, chosen: int | None) -> int:
    """The chosen seed, or 0; for another person's file one that it cannot hold the answers to. The report names it."""
    if chosen is not None:
        return chosen
    return secrets.randbelow(2**31) if untrusted else 0


@contextmanager
def refused_below_tier_1(untrusted: bool, tier: int | None) -> Iterator[None]:
    """Turn a grading that would be too weakly isolated into a UsageError, before anything of the file is run."""
    from attn_kata.engine.client import TooWeak

    if untrusted and tier is not None and tier < LEAST_TIER:
        raise UsageError(
            f"--untrusted needs isolation of tier {LEAST_TIER} or more, and --tier says {tier}.",
            next_step="Leave --tier out, or trust the file as your own and leave --untrusted out",
        )
    try:
        yield
    except TooWeak as weak:
        raise UsageError(
            f"Another person's file is not graded below tier {LEAST_TIER}, and here there is only tier 0. {weak}".strip(),
            next_step=_WAY_OUT,
        ) from weak
