"""Runs the attempt as `python FILE` would: own tests, asserts and prints, the part under `__main__` included.

It runs isolated in the engine like every grading. Nothing of the hidden tests is asked, and nothing of ours is shown.
"""

from __future__ import annotations

import secrets
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from attn_kata import catalog, templates
from attn_kata.interview.smoke import Smoke
from attn_kata.report.plain import capped
from attn_kata.report.summary import more_lines

if TYPE_CHECKING:
    from attn_kata.engine.client import Engine

SECONDS = 20.0  # for all; one call, which the whole file is, may take ten
MOST_LINES, MOST_CHARACTERS = 200, 12_000  # of what is shown: the end of it, where the traceback is
_SAYS = {
    "ended": "Your file ran to its end, without an error.",
    "raised": "Your file stopped with an exception.",
    "stopped": "Your file ended with an error code.",
}


def run(engine: Engine, slug: str, source: bytes, *, attempt: str) -> Smoke:
    """Run the file. Raises EngineFault where the engine itself fails, never for anything the attempt does."""
    mark = f"-- {secrets.token_hex(8)} --"
    name = PurePath(attempt).name
    script = templates.render("interview_script.py.j2", source=source, name=name, mark=mark).encode()
    report = engine.grade(
        slug,
        script,
        attempt=f"(run of {name})",
        timeout=SECONDS,
        properties=catalog.find(slug).shapes,  # none is reached: the script defines no entry point
        diagnose=False,
    )
    printed, ended, rest = report.attempt_output.partition(f"\n{mark}")
    how = rest.strip().split("\n")[0]
    output = _last(printed)
    if how in _SAYS:
        outcome: Literal["passed", "failed"] = "passed" if how == "ended" else "failed"
        return Smoke(outcome=outcome, shape=_SAYS[how], output=output)
    if ended or report.ungraded_because is None or "_attn_kata_script" in report.ungraded_because:
        lost = "Your file printed so much that its end is lost. Print less, and run again."
        return Smoke(outcome="ungraded", shape=lost, output=output)
    because = report.ungraded_because.removeprefix("while it was imported: ")
    return Smoke(outcome="ungraded", shape=f"Your file did not end: {because}", output=output)


def _last(text: str) -> str:
    """The end of `text`, safe to show, and the number of lines left out before it."""
    lines = text.strip("\n").split("\n")
    left_out = max(0, len(lines) - MOST_LINES)
    kept, more = capped("\n".join(lines[left_out:]), lines=MOST_LINES, characters=MOST_CHARACTERS)
    head = [more_lines(left_out)] if left_out else []
    return "\n".join([*head, *kept, *([more_lines(more)] if more else [])])
