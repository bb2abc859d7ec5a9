"""`python -m tests.bench.search [KATA]`: how long the search for a mistake takes, on every known one and every pair of them.

For each mutant of the kata (mha), alone and in pairs, the answers that an attempt with these mistakes gives are made first;
what is timed is the search alone. Then the same for answers that nothing reproduces: there all pairs are tried in vain, then
triples as far as `search.TRIPLES` and `search.TRIALS` go. Run it with nothing else running.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
import time
from collections.abc import Iterable

import torch

from attn_kata import catalog
from attn_kata.authoring import mutants
from attn_kata.diagnosis import outcomes, search
from attn_kata.diagnosis.pipeline import Pipeline, State, Variant, load
from attn_kata.grading.local import local_handle

UNKNOWN = 8  # answers that nothing reproduces


def main(slug: str) -> None:
    """Print a Markdown table: median, 95th percentile and longest, in milliseconds."""
    torch.set_num_threads(1)  # as in a grading
    kata = catalog.find(slug)
    print("| of", slug, "| searches | median ms | 95 % ms | longest ms |\n|---|---|---|---|---|")
    for pipeline in load(kata.folder).PIPELINES:
        torch.manual_seed(1)
        reference = local_handle(kata.solution, kata.returns)
        begun, known = mutants._initial_states(pipeline, reference), mutants.Known(pipeline, reference)
        for pairs, name in ((False, "one mistake"), (True, "two mistakes")):
            own = [chosen for chosen in mutants.choices(pipeline, pairs=pairs) if known.lacks(chosen)]
            shown = [chosen for chosen in own if all(variant.shows_in_values for variant in chosen)]
            told = [timed for chosen in shown if (timed := named(pipeline, begun, chosen)) is not None]
            print(f"| {pipeline.entry}: {name} {row([seconds for seconds, _ in told])}")
            missed = sum(not found for _, found in told)
            print(f"| … of which not named | {missed} | | | |")
        most = search.MOST
        for tried in (2, most):
            search.MOST = tried
            print(f"| {pipeline.entry}: none known, up to {tried} tried {row(unknown(pipeline, begun))}")
        search.MOST = most


def named(pipeline: Pipeline, begun: list[State], chosen: tuple[Variant, ...]) -> tuple[float, bool] | None:
    """How long the search takes for these mistakes, and whether it names them. None where an attempt would only raise."""
    results = [outcomes.outcome(pipeline, state, chosen) for state in begun]
    answers = [
        search.Answer(output=None, raised=result)
        if isinstance(result, str)
        else search.Answer(output=result.out.double())
        for result in results
    ]
    if all(answer.output is None for answer in answers):
        return None
    order = sorted(range(len(answers)), key=lambda place: answers[place].output is None)
    seconds, found = timed(pipeline, [begun[place] for place in order], [answers[place] for place in order])
    return seconds, frozenset(variant.id for variant in chosen) in found


def unknown(pipeline: Pipeline, begun: list[State]) -> list[float]:
    """How long the search takes for answers at random, in the right shape."""
    taken = []
    for _ in range(UNKNOWN):
        answers = [search.Answer(output=torch.randn(pipeline.result(state).out.shape).double()) for state in begun]
        taken.append(timed(pipeline, begun, answers)[0])
    return taken


def timed(pipeline: Pipeline, begun: list[State], answers: list[search.Answer]) -> tuple[float, list[frozenset[str]]]:
    """Seconds that the first search of a process takes, and what it finds. Later ones know what the first has computed."""
    fresh = dataclasses.replace(pipeline)
    started = time.perf_counter()
    found = search.explain(fresh, begun, answers)
    return time.perf_counter() - started, found


def row(taken: Iterable[float]) -> str:
    """The rest of a row of the table."""
    ordered = sorted(1000 * one for one in taken)
    late = ordered[int(0.95 * (len(ordered) - 1))]
    return f"| {len(ordered)} | {statistics.median(ordered):.0f} | {late:.0f} | {ordered[-1]:.0f} |"


if __name__ == "__main__":
    main(*sys.argv[1:] or ["mha"])
