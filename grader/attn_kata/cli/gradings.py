"""The gradings of one `grade`. Of code by other names that is also what may be meant where the first could not be read, the
block around what is right, and what its reading leaves out."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from attn_kata import catalog
from attn_kata.cli import beyond_reading
from attn_kata.cli.output import warn
from attn_kata.cli.reading_options import ReadingOptions
from attn_kata.readings import contract, further, inference, origin
from attn_kata.report.model import Report
from attn_kata.workspace import Attempt

MOST_SECONDS = 10.0  # for what may be meant where the first could not be read


@dataclass(kw_only=True)
class Gradings:
    """`target` and `options` say in the end what the report is of: the kata, and how the next command names it."""

    target: Attempt
    source: bytes
    reading: ReadingOptions
    options: str
    graded: beyond_reading.Graded

    def first(self) -> Report:
        """The report of the kata as it was asked for."""
        return self.graded(self.target.kata.slug, self.reading.flags)

    def every(self) -> Report:
        """The same, and of code by other names what follows from it."""
        report = self.first()
        if self.reading.strict:
            return report
        if not self.reading.flags:
            report = beyond_reading.without_mask(report, self.graded)
            report = beyond_reading.of_one_length(report, self.graded)
        if self.target.told_by:
            report = self._as_read(report)
            report = self._else_meant(report)
        report = beyond_reading.without_output(report, self.source, self.graded)
        if self.target.told_by:
            report = self._around(report)
        report = beyond_reading.tried(report, self.source, self.graded)
        if self.target.told_by and not self.reading.flags:
            report = beyond_reading.beside(report, self.source, self.graded)
        if report.kata != self.target.kata.slug and report.reading is not None:
            self._is_of(report.kata, report.reading["entry"])
        return report

    def _as_read(self, report: Report) -> Report:
        """The report by a reading, where the contract's names are in the code by chance, and only the contract fails it.

        Also where the reading fails or gives nothing, if all that the contract fails is names and checks of its own.
        """
        if report.outcome != "failed" or report.reading is not None or self.reading.flags:
            return report
        name = origin.built_otherwise(self.source, catalog.find(report.kata))
        if not name:
            return report
        other = self.graded(report.kata, (f"entry={name}",))
        core = [one.property for one in report.findings if one.tier == "core" and one.outcome == "failed"]
        # Nobody promised the contract's own names and checks: without a reading, the code is ungraded, and not wrong.
        formal = set(core) <= set(self._names_and_checks(report.kata))
        says_more = formal and (other.outcome == "ungraded" or (other.was_tested and other.says_why))
        if other.outcome != "passed" and not says_more:
            return report
        ids = [mistake.id for one in report.diagnosis for mistake in one.mistakes]
        failed = ids or [one.property for one in report.findings if one.outcome == "failed"]
        said = f"By the contract alone it fails: {', '.join(failed)}. To grade it by the contract: --strict"
        return replace(other, notes=[*other.notes, said])

    @staticmethod
    def _names_and_checks(slug: str) -> tuple[str, ...]:
        """The properties of a kata that are about the names and checks of its contract."""
        known = contract.of_kata(catalog.find(slug).folder)
        return () if known is None else tuple(known.left_out.get("always", ()))

    def _else_meant(self, report: Report) -> Report:
        """Where no reading was found, the report of another definition, or of a method alone."""
        slug = self.target.kata.slug
        others = self.reading.others(self.source, slug, why=report.ungraded_because or "")
        if report.outcome != "ungraded":  # wrong however it is read: a method says no more
            others = [one for one in others if "." not in one[1]]
        for kata, name, why in (*self._as_its_own_kata(report), *others):
            other = self.graded(kata, (f"entry={name}",), seconds=MOST_SECONDS)
            # The same code as another kata, which has no mask that the first one lacked.
            less_near = name == self.reading.meant(self.source, slug) and not self.reading.has_more_masks(kata, slug)
            if other.outcome == "passed" and not further.is_all_of(self.source, name):
                said = f"{name} is right, as {kata} (--kata {kata} --class {name} shows it). What uses it is not graded"
                report = replace(report, notes=[*report.notes, said])
            elif other.outcome == "passed" or (
                other.was_tested and other.says_why and (not less_near or _is_of_its_query_alone(other))
            ):
                self._is_of(kata, name, why)
                warn(why)
                return other
        return report

    def _as_its_own_kata(self, report: Report) -> list[tuple[str, str, str]]:
        """What was read in the place of something unread, as the kata that it looks like by itself."""
        if report.outcome != "ungraded" or report.reading is None or self.reading.flags:
            return []
        entry = report.reading["entry"]
        own = inference.kata_of(self.source, entry)
        if own is None or own[0] == report.kata or entry == self.reading.meant(self.source, report.kata):
            return []
        return [(own[0], entry, f"Only its part {entry} is graded, as {own[0]}.")]

    def _around(self, report: Report) -> Report:
        """The report of a block that is wrong around an attention that is right; else what is said of the blocks."""
        attention = report.reading["entry"] if report.reading and report.outcome == "passed" else ""
        for kata, name in self.reading.blocks_around(self.source, attention) if attention else ():
            other = self.graded(kata, (f"entry={name}",))
            if other.diagnosis and other.outcome == "failed" and other.was_tested:
                warn(f"{attention} is right, as {report.kata}. {name}, which uses it, is not:")
                self._is_of(kata, name)
                return other
            way = f"attn-kata grade {shlex.quote(self.target.name)} --kata {kata} --class {name}"
            right = other.outcome == "passed"
            warn(f"{name}, which uses it, " + ("is right too." if right else f"was not graded. {way} says why."))
        return report

    def _is_of(self, kata: str, name: str, told_by: str | None = None) -> None:
        told_by = self.target.told_by if told_by is None else told_by
        self.target = replace(self.target, kata=catalog.find(kata), told_by=told_by)
        self.options = f"--kata {kata} --class {name}"


def _is_of_its_query_alone(report: Report) -> bool:
    """Whether all that is wrong is that the code never reads its keys or values: read as self-attention, nothing else is."""
    return [[mistake.id for mistake in one.mistakes] for one in report.diagnosis] == [["context.ignored"]]
