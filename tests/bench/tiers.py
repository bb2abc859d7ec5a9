"""`python -m tests.bench.tiers [ROUNDS]`: what tier 1 adds to a grading, against tier 0 in the same rounds.

Both engines are warm all the time. In every round each of them grades once, in an order that alternates, after a pause. The
result is the median of the differences round by round, with the range of their middle half. The attempt process stands ready
and is confined before the grading, so that the difference is what every call costs in it.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass, field

from attn_kata.catalog import find
from attn_kata.engine.client import Engine

SLUG = "sdpa"
IDLE_SECONDS = 0.6
TIERS = (0, 1)


@dataclass(kw_only=True)
class Pairs:
    """The seconds of each grading, round by round: tier 0's and tier 1's."""

    of_tier: dict[int, list[float]] = field(default_factory=lambda: {tier: [] for tier in TIERS})

    @property
    def extra(self) -> list[float]:
        """What tier 1 took longer, in ms."""
        return [1000 * (one - none) for none, one in zip(*self.of_tier.values(), strict=True)]


def measured(rounds: int) -> Pairs:
    """Gradings by both tiers in turn."""
    source = find(SLUG).solution.read_bytes()
    pairs = Pairs()
    engines = {tier: Engine(tier=tier) for tier in TIERS}
    try:
        for engine in engines.values():
            engine.grade(SLUG, source, attempt="sdpa.py")
        time.sleep(3)
        for place in range(rounds):
            for tier in TIERS if place % 2 else reversed(TIERS):
                time.sleep(IDLE_SECONDS)
                started = time.perf_counter()
                report = engines[tier].grade(SLUG, source, attempt="sdpa.py")
                pairs.of_tier[tier].append(time.perf_counter() - started)
                if (report.outcome, report.isolation.tier) != ("passed", tier):
                    raise SystemExit(f"tier {tier} graded at {report.isolation}: {report.outcome}")
    finally:
        for engine in engines.values():
            engine.close()
    return pairs


def row(pairs: Pairs) -> str:
    """A line of a Markdown table: the difference, its middle half, and what tier 0 takes."""
    low, middle, high = statistics.quantiles(pairs.extra, n=4)
    base = 1000 * statistics.median(pairs.of_tier[0])
    return f"| tier 1 over tier 0, warm | {middle:+.1f} ms of {base:.0f} | {low:+.1f}–{high:+.1f} |"


if __name__ == "__main__":
    print("| | median of the differences | middle half |\n|---|---|---|")
    print(row(measured(int(sys.argv[1]) if len(sys.argv) > 1 else 20)))
