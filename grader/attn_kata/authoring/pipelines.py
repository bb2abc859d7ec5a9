"""The rules for `mistakes.py` and for the ids that a kata names. A part of `attn-kata dev check`; it loads torch."""

from __future__ import annotations

import traceback
import types
from collections.abc import Iterable, Iterator
from pathlib import Path

from attn_kata.catalog import Kata
from attn_kata.diagnosis import catalogue
from attn_kata.errors import KataFileError
from attn_kata.specimens import Specimen


def problems(kata: Kata, found: Iterable[Specimen]) -> Iterator[str]:
    """What is wrong, one sentence each; nothing of it would be understood from a diagnosis that fails."""
    try:
        words = catalogue.load()
    except KataFileError as problem:
        yield problem.what
        return
    for specimen in found:
        for id in sorted(specimen.mistakes - words.keys()):
            yield f"{specimen.title} names '{id}', which has no words in mistakes.toml or in the catalogue"
    if not (kata.folder / "mistakes.py").is_file():
        yield "there is no mistakes.py"
        return
    try:
        module = _load(kata.folder)
    except Exception as problem:  # whatever an author's file raises
        yield f"mistakes.py{_line(problem, kata.folder)}: {type(problem).__name__}: {problem}"
        return
    named = [variant.id for pipeline in module.PIPELINES for variant in pipeline.variants]
    named += [symptom.id for symptom in getattr(module, "SYMPTOMS", ())]
    for id in sorted(set(named) - words.keys()):
        yield f"mistakes.py names '{id}', which has no words in mistakes.toml or in the catalogue"
    yield from _unlike_the_reference(kata, module)


def _unlike_the_reference(kata: Kata, module: types.ModuleType) -> Iterator[str]:
    """A pipeline without a mistake computes what the reference computes."""
    import torch

    from attn_kata.authoring import mutants
    from attn_kata.diagnosis.search import EQUAL, Answer, distance
    from attn_kata.grading.local import local_handle

    for pipeline in module.PIPELINES:
        if pipeline.entry not in kata.entries:
            yield f"mistakes.py: the pipeline '{pipeline.entry}' is no entry of kata.toml"
            continue
        try:
            torch.manual_seed(mutants.SEED)
            reference = local_handle(kata.solution, kata.returns)
            for place, (state, expected) in enumerate(mutants.reference_outputs(pipeline, reference), start=1):
                if distance(Answer(output=expected), pipeline.result(state)) > EQUAL:
                    yield f"mistakes.py: without a mistake, '{pipeline.entry}' is not the reference on probe {place}"
                    break
        except Exception as problem:
            line = _line(problem, kata.folder)
            yield f"mistakes.py{line}: '{pipeline.entry}' raises {type(problem).__name__}: {problem}"


def _load(folder: Path) -> types.ModuleType:
    from attn_kata.diagnosis import pipeline

    return pipeline.load(folder)


def _line(problem: Exception, folder: Path) -> str:
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if Path(frame.filename).parent == folder]
    return f", line {frames[-1].lineno}" if frames else ""
