"""A bug hunt: a file that looks right and is not. Find the mistakes and mend them; nothing says how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attn_kata import contract
from attn_kata.catalog import Kata
from attn_kata.errors import UsageError, why
from attn_kata.rounds.spoiled import Bug, Spoiled

if TYPE_CHECKING:
    from attn_kata.report.model import Report


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What became of the mistakes of a hunt, by id. `unclear` are those of which the grading does not tell.

    `other` has the properties that fail where no known mistake explains them.
    """

    mended: tuple[str, ...]
    left: tuple[str, ...]
    new: tuple[str, ...]
    unclear: tuple[str, ...] = ()
    other: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether all is mended and nothing is newly wrong."""
        return not (self.left or self.new or self.unclear or self.other)


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


def judge(spoiled: Spoiled, source: bytes, report: Report) -> Judgement | None:
    """What became of the mistakes in `source`, by its grading. None if it could not be graded.

    The diagnosis tells. Where it explains nothing, a mistake whose text stands there unchanged is left, and whether another
    one is mended is unclear.
    """
    if report.outcome == "ungraded":
        return None
    planted = [bug.mistake for bug in spoiled.bugs]
    if report.passed:
        return Judgement(mended=tuple(planted), left=(), new=())
    named = [[mistake.id for mistake in one.mistakes] for one in report.diagnosis]
    # Of several sets that give the same numbers, the one that is nearest to what was there.
    found = max(named, key=lambda ids: len({*ids} & {*planted}), default=[])
    left = [id for id in planted if id in found]
    gone = [id for id in planted if id not in found]
    if found and report.explained:
        return Judgement(mended=tuple(gone), left=tuple(left), new=_others(found, planted))
    unchanged = [bug.mistake for bug in spoiled.bugs if bug.mistake in gone and _is_unchanged(bug, source)]
    return Judgement(
        mended=(),
        left=tuple(id for id in planted if id in left or id in unchanged),
        new=_others(found, planted),
        unclear=tuple(id for id in gone if id not in unchanged),
        other=() if found else _failing(report),
    )


def _others(found: Sequence[str], planted: Sequence[str]) -> tuple[str, ...]:
    return tuple(id for id in found if id not in planted)


def _is_unchanged(bug: Bug, source: bytes) -> bool:
    """Whether the text of the mistake stands in the file as it was written. Text that an edit took out is not seen."""
    written = source.decode("utf-8", "replace").replace("\r\n", "\n")
    return any(new.strip() for new in bug.wrong) and all(new in written for new in bug.wrong)


def _failing(report: Report) -> tuple[str, ...]:
    return tuple(
        each.property for each in report.findings if each.tier == "core" and each.outcome in ("failed", "errored")
    )
