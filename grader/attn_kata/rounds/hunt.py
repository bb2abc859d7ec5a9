"""A bug hunt: a file that looks right and is not. Find the mistakes and mend them; nothing says how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from attn_kata import contract
from attn_kata.catalog import Kata
from attn_kata.errors import UsageError, why
from attn_kata.report.model import HuntResult, Report
from attn_kata.rounds.spoiled import Bug, Spoiled

_MARK = "# Bug hunt: "


def is_hunt(source: bytes) -> bool:
    """Whether the file says at its top that it was written for a hunt. Mending it does not pass the kata."""
    return f"\n{_MARK}".encode() in source[:1024]


def text(kata: Kata, spoiled: Spoiled) -> str:
    """The file: what it has to do, in comments, then the code. It does not tell what is wrong."""
    asked = contract.load(kata.prompt).text
    head = [
        f"attn-kata: {kata.slug}",
        "",
        f"{_MARK[2:]}{kata.title}. This code looks right, but it has mistakes. Find them and mend them.",
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
                try:
                    file.write(content)
                    file.flush()
                except BaseException:
                    path.unlink(missing_ok=True)
                    raise
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

    The diagnosis tells. Where it does not explain everything, the text does: a mistake is mended where the right text is
    back, and left where the wrong one stands unchanged. Otherwise it is unclear.
    """
    if report.outcome == "ungraded":
        return None
    planted = [bug.mistake for bug in spoiled.bugs]
    named = [[mistake.id for mistake in one.mistakes] for one in report.diagnosis]
    # Of several sets that give the same numbers, the one that is nearest to what was there.
    found = [] if report.passed else max(named, key=lambda ids: len({*ids} & {*planted}), default=[])
    told = report.passed or (bool(found) and (report.explained or len(planted) == 1))
    seen = {bug.mistake: _seen(bug, source) for bug in spoiled.bugs if bug.mistake not in found and not told}
    return HuntResult(
        mended=[id for id in planted if id not in found and (told or seen[id] == "mended")],
        left=[id for id in planted if id in found or seen.get(id) == "left"],
        new=[id for id in found if id not in planted],
        unclear=[id for id in planted if seen.get(id) == "unclear"],
        other=[] if report.passed or found else _failing(report),
        minutes=round(minutes, 1),
        in_time=in_time,
    )


def note(result: HuntResult) -> str:
    """What became of them, in a few sentences for a report."""
    count = len(result.mended) + len(result.left) + len(result.unclear)
    if result.done:
        said = [f"you mended {'the mistake' if count == 1 else f'all {count} mistakes'}{_names(result.mended)}."]
    else:
        said = [f"{len(result.mended)} of {count} mistake{'' if count == 1 else 's'} mended{_names(result.mended)}."]
    if result.left:
        said.append(f"Left{_names(result.left)}.")
    if result.new:
        said.append(f"New{_names(result.new)}.")
    if result.unclear:
        said.append(f"Mended or not, the diagnosis cannot tell{_names(result.unclear)}.")
    if result.other:
        more = ", …" if len(result.other) > 3 else ""
        said.append(f"No known mistake explains what fails{_names(result.other[:3])}{more}.")
    if result.in_time is not None or result.done:
        end = (
            "" if result.in_time is None else ", within your time" if result.in_time else ", after the end of your time"
        )
        count = round(result.minutes)
        said.append(f"{count} minute{'' if count == 1 else 's'} after the start{end}.")
    return f"Bug hunt: {' '.join(said)}"


def _names(ids: Sequence[str]) -> str:
    return f": {', '.join(ids)}" if ids else ""


def _seen(bug: Bug, source: bytes) -> Literal["mended", "left", "unclear"]:
    """What the text of the file tells of a mistake: the right text is back, or the wrong one stands there unchanged."""
    written = source.decode("utf-8", "replace").replace("\r\n", "\n")
    pairs = list(zip(bug.wrong, bug.right, strict=True))
    # The one text may be a part of the other one.
    back = [right in written and (wrong in right or wrong not in written) for wrong, right in pairs]
    if all(back):
        return "mended"
    there = [
        bool(wrong.strip()) and wrong in written and not mended for (wrong, _), mended in zip(pairs, back, strict=True)
    ]
    return "left" if all(there) else "unclear"


def _failing(report: Report) -> list[str]:
    return [each.property for each in report.findings if each.tier == "core" and each.outcome in ("failed", "errored")]
