"""`python -m tests.bench.tiers [ROUNDS]`: what tier 1 adds to a grading, against tier 0 in the same rounds.

Both engines are up and warm all the time. In every round each of them grades once in each way, in an order that alternates,
after a pause in which everything comes to rest; what is told is the median of the differences round by round, with the range
of their middle half. The ways differ in the attempt children that are waited for:

- as `watch`: the child that stands ready, confined before anybody asked: what is left is what every call costs in it;
- as `grade`: besides, one that is forked and confined there and then, for the values without what is forbidden.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass, field

from attn_kata.catalog import find
from attn_kata.engine.client import Engine

SLUG = "sdpa"
WAYS = {"as `watch`, 1 child, ready before": False, "as `grade`, 1 child ready before and 1 forked": True}
IDLE_SECONDS = 0.6
TIERS = (0, 1)


@dataclass(kw_only=True)
class Pairs:
    """The seconds of one way, round by round: tier 0's and tier 1's."""

    of_tier: dict[int, list[float]] = field(default_factory=lambda: {tier: [] for tier in TIERS})

    @property
    def extra(self) -> list[float]:
        """What tier 1 took longer, in ms."""
        return [1000 * (one - none) for none, one in zip(*self.of_tier.values(), strict=True)]


def measured(rounds: int) -> dict[str, Pairs]:
    """The pairs of every way."""
    source = find(SLUG).solution.read_bytes()
    pairs = {way: Pairs() for way in WAYS}
    engines = {tier: Engine(tier=tier) for tier in TIERS}
    try:
        for engine in engines.values():
            for unaided in (False, True):
                engine.grade(SLUG, source, attempt="sdpa.py", unaided=unaided)
        time.sleep(3)
        for place in range(rounds):
            for way, unaided in WAYS.items():
                for tier in TIERS if place % 2 else reversed(TIERS):
                    time.sleep(IDLE_SECONDS)
                    started = time.perf_counter()
                    report = engines[tier].grade(SLUG, source, attempt="sdpa.py", unaided=unaided)
                    pairs[way].of_tier[tier].append(time.perf_counter() - started)
                    if (report.outcome, report.isolation.tier) != ("passed", tier):
                        raise SystemExit(f"tier {tier} graded at {report.isolation}: {report.outcome}")
    finally:
        for engine in engines.values():
            engine.close()
    return pairs


def rows(pairs: dict[str, Pairs]) -> list[str]:
    """Lines of a Markdown table: the difference, its middle half, and what tier 0 takes."""
    lines = []
    for way, each in pairs.items():
        low, middle, high = statistics.quantiles(each.extra, n=4)
        base = 1000 * statistics.median(each.of_tier[0])
        lines.append(f"| tier 1 over tier 0, {way} | {middle:+.1f} ms of {base:.0f} | {low:+.1f}–{high:+.1f} |")
    return lines


if __name__ == "__main__":
    print("| | median of the differences | middle half |\n|---|---|---|")
    print("\n".join(rows(measured(int(sys.argv[1]) if len(sys.argv) > 1 else 20))))
