"""Mutants: the reference with one known mistake or a pair of them. The hidden tests must fail each one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from attn_kata import catalog
from attn_kata.diagnosis.outcomes import outcome
from attn_kata.diagnosis.pipeline import Output, Pipeline, State, Variant
from attn_kata.diagnosis.probing import output_of
from attn_kata.diagnosis.search import EQUAL, Answer, distance
from attn_kata.grading.hidden_tests import Begin, HiddenTest
from attn_kata.grading.hidden_tests import load as load_tests
from attn_kata.grading.local import Local, load_namespace
from attn_kata.grading.runner import Run
from attn_kata.properties.handle import Handle
from attn_kata.resources import katas_folder

SEED = 0
IN_PAIRS = 3  # variants of one id that are met in pairs; alone, all are
ONE_IN = 3  # pairs: the others would ask the same again


def choices(pipeline: Pipeline, *, pairs: bool) -> Iterator[tuple[Variant, ...]]:
    """Every single variant; or one in `ONE_IN` of all two ids, each as one pair of variants that show in values.

    The two replace different stages. All pairs would be many times as many, and ask the same again. Which variants of two
    ids make the pair changes from pair to pair, among the first of each, so that not only the first is met.
    """
    if not pairs:
        yield from ((variant,) for variant in pipeline.variants)
        return
    by_id: dict[str, list[Variant]] = {}
    for variant in pipeline.variants:
        if variant.shows_in_values:
            by_id.setdefault(variant.id, []).append(variant)
    first = [some[:IN_PAIRS] for some in by_id.values()]
    turn = 0
    for (here, one), (there, other) in itertools.combinations_with_replacement(enumerate(first), 2):
        if (here + there) % ONE_IN:
            continue  # so every id meets about as many others
        together = itertools.combinations(one, 2) if one is other else itertools.product(one, other)
        possible = [pair for pair in together if not set(pair[0].stages) & set(pair[1].stages)]
        if possible:
            yield possible[turn % len(possible)]
            turn += 1


class Known:
    """What the reference and the single variants of a pipeline compute on its probes."""

    def __init__(self, pipeline: Pipeline, reference: Handle) -> None:
        self._pipeline, self._reference = pipeline, reference

    def lacks(self, chosen: tuple[Variant, ...]) -> bool:
        """Whether these variants compute something else than the reference, and two something else than every single one.

        A variant that shows in no value is always something else.
        """
        if not all(variant.shows_in_values for variant in chosen):
            return True
        outcomes = self._outcomes(chosen)
        known = [self._of_reference] if len(chosen) == 1 else [self._of_reference, *self._of_singles]
        return not any(_equal(outcomes, other) for other in known)

    @functools.cached_property
    def _begun(self) -> list[State]:
        torch.manual_seed(SEED)
        return _initial_states(self._pipeline, self._reference)

    @functools.cached_property
    def _of_reference(self) -> list[State | str]:
        return self._outcomes(())

    @functools.cached_property
    def _of_singles(self) -> list[list[State | str]]:
        return [self._outcomes((variant,)) for variant in self._pipeline.variants]

    def _outcomes(self, chosen: tuple[Variant, ...]) -> list[State | str]:
        return [outcome(self._pipeline, state, chosen) for state in self._begun]


def handle(
    solution: Path,
    pipeline: Pipeline,
    chosen: tuple[Variant, ...],
    returns: Mapping[str, tuple[str, ...]] | None = None,
) -> Handle:
    """A handle on the reference with these mistakes in this entry point. The name of the solution is the kata's.

    `returns` as in `catalog.Kata`; by default it is read from the kata's file.
    """
    namespace = load_namespace(solution)
    if pipeline.module:
        setattr(namespace, pipeline.entry, _module(getattr(namespace, pipeline.entry), pipeline, chosen))
    else:
        setattr(namespace, pipeline.entry, lambda *args: pipeline.call(pipeline.begin(*args), chosen).out)
    return Handle(
        Local(namespace), catalog.load(katas_folder() / solution.stem).returns if returns is None else returns
    )


def _module(reference: Any, pipeline: Pipeline, chosen: tuple[Variant, ...]) -> type:
    class Mutant(reference):  # type: ignore[misc]
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.built_with = args

        def forward(self, *args: Any) -> Any:
            begun = pipeline.begin(dict(self.named_parameters()), self.built_with, *args)
            begun.training = self.training
            return pipeline.call(begun, chosen).out

    return Mutant


def hidden_tests(folder: Path) -> list[HiddenTest]:
    """The kata's hidden tests, in the file's order."""
    return load_tests(folder / f"test_{folder.name}.py")


def killers(
    tests: list[HiddenTest],
    mutant: Handle,
    reference: Handle,
    *,
    first: bool = False,
    seed: int = SEED,
    begin: Begin = lambda _: None,
) -> list[str]:
    """The core properties that the mutant fails, among those whose needs hold. `begin` is called with each case before it runs.

    With `first`, one such property is enough. `values`, or `gradients` where a kata has no values, is then tested before all
    others, because most mutants fail it, and its needs are not checked: if one of them does not hold, the mutant is killed
    anyway. If it passes, it is not tested again. `from_scratch`, which watches every operation and needs no value to be right,
    comes last.
    """
    core = [test for test in tests if test.property.tier == "core"]
    if first:
        core.sort(key=lambda test: test.property.name == "from_scratch")
        likely = "values" if any(test.property.name == "values" for test in core) else "gradients"
        early = [test for test in core if test.property.name == likely]
        running = Run(attempt=mutant, reference=reference, seed=seed, begin=begin)
        running.held.update(*(test.property.needs for test in early))
        if any(running.take(test).outcome == "failed" for test in early):
            return [likely]
        core = [test for test in core if test not in early]
    running = Run(attempt=mutant, reference=reference, seed=seed, begin=begin)
    if first:
        running.held.add(likely)  # it has passed
    found = []
    for test in core:
        if running.take(test).outcome == "failed":
            found.append(test.property.name)
            if first:
                break
    return found


def _initial_states(pipeline: Pipeline, reference: Handle) -> list[State]:
    return [state for state, _ in reference_outputs(pipeline, reference)]


def reference_outputs(pipeline: Pipeline, reference: Handle) -> Iterator[tuple[State, Output]]:
    """For each probe the pipeline's first state, and what the reference gives there (in eval())."""
    for probe in pipeline.probes():
        target = getattr(reference, pipeline.entry)
        weights: dict[str, torch.Tensor] = {}
        if pipeline.module:
            target = target(*probe.build)
            weights = probe.weights(target.parameters)
            target.load(weights)
            target = target._with({"training": False})
        yield pipeline.first_state(weights, probe), output_of(pipeline, target, reference, probe)


def _equal(one: list[State | str], other: list[State | str]) -> bool:
    return all(distance(_answer(mine), theirs) <= EQUAL for mine, theirs in zip(one, other, strict=True))


def _answer(result: State | str) -> Answer:
    return Answer(output=None, raised=result) if isinstance(result, str) else Answer(output=result.out)
