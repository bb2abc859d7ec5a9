"""Bug hunts of every kata: how many can be made, how long it takes, and whether `grade` tells what was mended.

    python -m tests.bench.hunts [SEEDS [KATA …]]

For each kata and each number of mistakes: of SEEDS hunts, how many were made, with how many gradings each and how many
seconds at most. Then each mistake is mended alone: how often exactly this one is said to be mended, and the others left.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

from attn_kata import catalog
from attn_kata.engine.client import Engine
from attn_kata.errors import UsageError
from attn_kata.report.model import Report
from attn_kata.rounds import hunt, spoiled
from attn_kata.rounds.spoiled import MOST_BUGS, Bug, Spoiled


def main(seeds: int, slugs: list[str]) -> None:
    """Print one line for each kata and number of mistakes, and what was told wrongly."""
    total: Counter[str] = Counter()
    with Engine() as engine:
        engine.wait_until_ready()
        for slug in slugs or catalog.slugs():
            for bugs in range(1, MOST_BUGS + 1):
                total += _one(engine, slug, bugs, seeds)
    print(dict(total))


def _one(engine: Engine, slug: str, bugs: int, seeds: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    styles: Counter[str] = Counter()
    worst = 0.0

    def grade(slug: str, source: bytes) -> Report:
        counts["gradings"] += 1
        return engine.grade(slug, source, attempt="hunt.py")

    for seed in range(seeds):
        begun = time.perf_counter()
        counts["asked"] += 1
        try:
            made, _ = spoiled.make(catalog.find(slug), seed=seed, bugs=bugs, grade=grade)
        except UsageError:
            continue
        finally:
            worst = max(worst, time.perf_counter() - begun)
        counts["made"] += 1
        styles[made.style] += 1
        for bug in made.bugs:
            source = _mended(made, bug)
            if source is None:
                continue
            result = hunt.judge(made, source, engine.grade(slug, source, attempt="hunt.py"))
            counts["mended"] += 1
            told = result is not None and (result.mended, result.new) == ([bug.mistake], [])
            counts["told"] += told
            if not told:
                print(f"  {slug} seed {seed}: {bug.mistake} of {sorted(made.mistakes)} in {made.style}: {result}")
    said = f"{counts['made']} of {counts['asked']} made, {counts['gradings'] / seeds:.1f} gradings each, at most {worst:.1f} s"
    print(
        f"{slug} {bugs}: {said}; {counts['told']} of {counts['mended']} mended ones told; {len(styles)} styles",
        flush=True,
    )
    return counts


def _mended(made: Spoiled, bug: Bug) -> bytes | None:
    """The source without this mistake; None where the text of another one stands in it."""
    source = made.source
    for wrong, right in reversed(list(zip(bug.wrong, bug.right, strict=True))):
        if not wrong or source.count(wrong) != 1:
            return None
        source = source.replace(wrong, right)
    return source.encode()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:])
