"""What `run_autograder` of the Gradescope bundle runs: `python -m attn_kata.classroom.autograder KATA …`.

It is started in the folder `source`, beside `submission` and `results`. It grades as `--untrusted` does, with new inputs each
time, and writes results/results.json. A fault of attn-kata writes nothing, and Gradescope tells the teacher.
"""

from __future__ import annotations

import json
import secrets
import statistics
import sys
from pathlib import Path
from typing import Any

from attn_kata import catalog
from attn_kata.catalog import Kata
from attn_kata.classroom import mistakes, pages, submissions, tree
from attn_kata.classroom.bundles import RUBRIC
from attn_kata.classroom.setting import LEAST_TIER
from attn_kata.engine.client import Engine, TooWeak
from attn_kata.errors import UsageError
from attn_kata.report import gradescope, rubric
from attn_kata.report.rubric import Rubric

SUBMISSION, RESULTS = Path("../submission"), Path("../results/results.json")
TOO_WEAK = (
    "This machine cannot isolate your code, so it was not run. "
    "Tell your teacher: attn-kata needs Linux with Landlock and seccomp."
)


def main(slugs: list[str]) -> None:
    """Grade the submission for each kata, and write the results."""
    own = Path(__file__).parents[1] / RUBRIC
    points = rubric.load(own, mistakes.ids()) if own.is_file() else None
    with Engine() as engine:
        every = {slug: _results(engine, catalog.find(slug), points) for slug in slugs}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(_combined(every), indent=2) + "\n", encoding="utf-8")


def _results(engine: Engine, kata: Kata, points: Rubric | None) -> dict[str, Any]:
    try:
        with tree.opened(SUBMISSION) as files:
            entry = submissions.chosen(files.entries, kata)
            source = submissions.source_of(entry, kata)
        report = engine.grade(
            kata.slug,
            source.code,
            attempt=entry.name,
            seed=secrets.randbelow(2**31),
            least_tier=LEAST_TIER,
        )
    except UsageError as problem:
        return _nothing(problem.what)
    except TooWeak:
        return _nothing(TOO_WEAK)
    return gradescope.results(pages.for_student(source.located(report)), points)


def _nothing(because: str) -> dict[str, Any]:
    return {"score": 0.0, "output": because, "output_format": "text", "tests": []}


def _combined(every: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The results of one kata as they are; of several, with the mean of their scores."""
    if len(every) == 1:
        return next(iter(every.values()))
    tests = [{**test, "name": f"{slug}: {test['name']}"} for slug, found in every.items() for test in found["tests"]]
    return {
        **next(iter(every.values())),
        "score": round(statistics.fmean(found["score"] for found in every.values()), 1),
        "output": "\n\n".join(f"{slug}\n{found['output']}" for slug, found in every.items()),
        "tests": [{**test, "number": str(number)} for number, test in enumerate(tests, 1)],
    }


if __name__ == "__main__":
    main(sys.argv[1:])
