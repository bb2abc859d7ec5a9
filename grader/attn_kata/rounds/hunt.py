"""A bug hunt: a file that looks right and is not. Find the mistakes and mend them; nothing says how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attn_kata import contract
from attn_kata.catalog import Kata
from attn_kata.errors import UsageError, why
from attn_kata.report.model import HuntResult, Report
from attn_kata.rounds.spoiled import Bug, Spoiled


def text(kata: Kata, spoiled: Spoiled) -> str:
    """The file: what it has to do, in comments, then the code. It does not tell what is wrong."""
    asked = contract.load(kata.prompt).text
    head = [
        f"attn-kata: {kata.slug}",
        "",
        f"Bug hunt: {kata.title}. This code looks right, but it has mistakes. Find them and mend them.",
        "It has to do the following:",
        "",
        *asked.split("\n"),
    ]
    return "".join(f"# {line}".rstrip() + "\n" for line in head) + "\n\n" + spoiled.source.lstrip("\n")


def write(kata: Kata, spoiled: Spoiled, folder: Path) -> Path:
    """Write the file into `folder`, which is created if needed, as `hunt_<slug>.py` or the next number that is free.

    Raises UsageError where it cannot be written. No file is overwritten.
    """
    content = text(kata, spoiled).encode()
    try:
        folder = folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            path = folder / f"hunt_{kata.slug}{f'_{number}' if number > 1 else ''}.py"
            try:
                file = path.open("xb")
            except FileExistsError:
                continue
            with file:
                file.write(content)
            return path
    except OSError as problem:
        raise UsageError(
            f"No file can be written in '{folder}': {why(problem)}.", next_step="Try --dir DIR"
        ) from problem
    raise UsageError(f"There are too many hunts in '{folder}'.", next_step="Try --dir DIR")


def judge(
    spoiled: Spoiled, source: bytes, report: Report, *, minutes: float = 0.0, in_time: bool | None = None
) -> HuntResult | None:
    """What became of the mistakes in `source`, by its grading, `minutes` after the start. None if it could not be graded.

    The diagnosis tells. Where it explains nothing, a mistake whose text stands there unchanged is left, and whether another
    one is mended is unclear.
    """
    if report.outcome == "ungraded":
        return None
    planted = [bug.mistake for bug in spoiled.bugs]
    named = [[mistake.id for mistake in one.mistakes] for one in report.diagnosis]
    # Of several sets that give the same numbers, the one that is nearest to what was there.
    found = [] if report.passed else max(named, key=lambda ids: len({*ids} & {*planted}), default=[])
    told = report.passed or (bool(found) and (report.explained or len(planted) == 1))
    left = [bug.mistake for bug in spoiled.bugs if bug.mistake in found or (not told and _is_unchanged(bug, source))]
    gone = [id for id in planted if id not in left]
    return HuntResult(
        mended=gone if told else [],
        left=left,
        new=[id for id in found if id not in planted],
        unclear=[] if told else gone,
        other=[] if report.passed or found else _failing(report),
        minutes=round(minutes, 1),
        in_time=in_time,
    )


def sentences(result: HuntResult) -> list[str]:
    """What became of them, in sentences for a report."""
    count = len(result.mended) + len(result.left) + len(result.unclear)
    said = [f"Bug hunt: {len(result.mended)} of {_mistakes(count)} mended{_names(result.mended)}."]
    if result.done:
        said = [
            f"Bug hunt: you mended {'the mistake' if count == 1 else f'all {count} mistakes'}{_names(result.mended)}."
        ]
    if result.left:
        said.append(f"Bug hunt: {len(result.left)} left{_names(result.left)}.")
    if result.new:
        said.append(f"Bug hunt: {len(result.new)} new{_names(result.new)}.")
    if result.unclear:
        told = "it is" if len(result.unclear) == 1 else "they are"
        said.append(
            f"Bug hunt: {len(result.unclear)} unclear{_names(result.unclear)}. The diagnosis does not explain everything,"
            f" so it cannot tell whether {told} mended."
        )
    if result.other:
        more = ", …" if len(result.other) > 3 else ""
        said.append(f"Bug hunt: no known mistake explains what still fails: {', '.join(result.other[:3])}{more}.")
    when = f"{result.minutes:.0f} minute{'' if round(result.minutes) == 1 else 's'} after the start"
    if result.in_time is not None:
        said.append(f"Bug hunt: {when}, {'within' if result.in_time else 'after the end of'} your time.")
    elif result.done:
        said.append(f"Bug hunt: {when}.")
    return said


def _mistakes(count: int) -> str:
    return f"{count} mistake{'' if count == 1 else 's'}"


def _names(ids: Sequence[str]) -> str:
    return f": {', '.join(ids)}" if ids else ""


def _is_unchanged(bug: Bug, source: bytes) -> bool:
    """Whether the text of the mistake stands in the file as it was written. Text that an edit took out is not seen."""
    written = source.decode("utf-8", "replace").replace("\r\n", "\n")
    return any(new.strip() for new in bug.wrong) and all(new in written for new in bug.wrong)


def _failing(report: Report) -> list[str]:
    return [each.property for each in report.findings if each.tier == "core" and each.outcome in ("failed", "errored")]
