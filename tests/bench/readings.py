"""How well code by other names is read: every piece, and every mistake edited into one, through the whole path.

    python -m tests.bench.readings [STEP]      every STEP-th mistake (1)
    python -m tests.bench.readings time        CPU seconds of a grading: the contract's own names, and code that is read

Prints what was not read, what was called wrong and is right, and what was hidden or not named; then the shares.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from attn_kata.engine.client import Engine
from attn_kata.report.model import Report
from attn_kata.specimens import Edit, apply
from tests.readings import adapter

KATAS = Path(__file__).parents[2] / "katas"


def names(report: Report, mistake: str) -> bool:
    """Whether the report names the mistake, in the diagnosis or in what it says of the reading."""
    found = [named.id for one in report.diagnosis for named in one.mistakes]
    notes = " ".join((report.reading or {}).get("notes", []))
    return mistake in found or mistake in notes


def main(step: int) -> None:
    """Grade all of them."""
    pieces, mistakes = adapter.table("pieces"), adapter.table("mistakes")
    readable = {name: row for name, row in pieces.items() if (KATAS / row["kata"] / "reading.toml").is_file()}
    right = named = hidden = tried = 0
    with Engine() as engine:
        for name, row in readable.items():
            report = engine.grade(row["kata"], adapter.source(name).encode(), attempt=f"{name}.py", reads=True)
            right += report.passed
            if not report.passed:
                failed = [one.property for one in report.findings if one.outcome == "failed"]
                print(f"not right: {name} ({report.ungraded_because or failed})")
        for name, row in list(mistakes.items())[::step]:
            if row["piece"] not in readable:
                continue
            edits = [Edit(old=edit["old"], new=edit["new"], place=name) for edit in row["edit"]]
            text = apply(adapter.source(row["piece"]), edits)
            report = engine.grade(pieces[row["piece"]]["kata"], text.encode(), attempt=f"{name}.py", reads=True)
            tried += 1
            named += names(report, row["mistake"])
            hidden += report.passed and not names(report, row["mistake"])
            if not names(report, row["mistake"]):
                print(f"not named: {name} ({report.outcome})")
    print(f"right: {right} of {len(readable)}; mistakes named: {named} of {tried}, hidden: {hidden}")


WARM = 4  # gradings of a kept engine
# The first is graded by the contract's names, and the others are read: right, and wrong in a value and in a mask.
TIMED = (
    ("contract", None),
    ("minimal_gpt", "minimal_gpt__scale_missing"),
    ("annotated_four_linears", "annotated_four_linears__scale_missing"),
    ("annotated_four_linears", "annotated_four_linears__mask_after_softmax"),
    ("chinese_hide", "chinese_hide__scale_missing"),
)


def spent(source: bytes, times: int) -> float:
    """CPU seconds of all processes of an engine that grades the source so many times."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Engine() as engine:
        for _ in range(times):
            engine.grade("mha", source, attempt="timed.py", reads=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def times() -> None:
    """Print CPU seconds: of the first grading with the start of the engine, and of one more."""
    mistakes = adapter.table("mistakes")
    for piece, mistake in TIMED:
        right = (KATAS.parent / "solutions" / "mha.py").read_text("utf-8") if mistake is None else adapter.source(piece)
        edits = (
            [Edit(old=edit["old"], new=edit["new"], place=mistake) for edit in mistakes[mistake]["edit"]]
            if mistake
            else []
        )
        for name, text in {piece: right, **({mistake: apply(right, edits)} if mistake else {})}.items():
            cold, more = spent(text.encode(), 1), spent(text.encode(), 1 + WARM)
            print(f"{name:45} cold {cold:.2f} s   warm {(more - cold) / WARM:.2f} s")


if __name__ == "__main__":
    if sys.argv[1:] == ["time"]:
        times()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
