"""What several formats say of a report in the same words: the verdict, the counts, a finding, why one was skipped."""

from __future__ import annotations

from collections.abc import Iterable

from attn_kata.report.model import Finding, Report
from attn_kata.report.plain import capped, one_line, plain

MESSAGE_LINES = 12
MESSAGE_CHARACTERS = 1_500

VERDICTS = {"passed": "PASSED", "failed": "FAILED", "ungraded": "UNGRADED"}
NOT_WRITTEN = "NOT WRITTEN YET"
_COUNTED = {"failed": "fail", "errored": "errored", "skipped": "skipped"}


def verdict(report: Report) -> str:
    """One word, or three for the untouched stub."""
    return NOT_WRITTEN if report.not_written else VERDICTS[report.outcome]


def headline(report: Report) -> str:
    """The verdict in one line without colour."""
    return f"{verdict(report)}  {report.kata}  {one_line(report.attempt)}  {counts(report)}"


def counts(report: Report) -> str:
    """`9 of 14 core properties hold, 3 fail, 2 skipped; beyond the bar 4 of 5`."""
    if report.outcome == "ungraded":
        return "not graded"
    core = [finding.outcome for finding in report.findings if finding.tier == "core"]
    edge = [finding.outcome for finding in report.findings if finding.tier == "edge"]
    held = core.count("passed")
    which = "core properties that were asked for" if report.part else "core properties"
    said = [f"{held} of {len(core)} {which} hold" if held < len(core) else f"all {held} {which} hold"]
    said += [f"{core.count(outcome)} {word}" for outcome, word in _COUNTED.items() if outcome in core]
    beyond = f"; beyond the bar {edge.count('passed')} of {len(edge)}" if edge else ""
    return ", ".join(said) + beyond


def skipped_because(finding: Finding, held: Iterable[str]) -> str:
    """Why a finding was skipped, where the properties `held` hold."""
    known = set(held)
    return one_line(finding.message or "") or unmet([need for need in finding.needs if need not in known])


def unmet(needs: list[str]) -> str:
    """`needs mask and values, which do not hold`."""
    return f"needs {listed(needs)}, which {'do' if len(needs) > 1 else 'does'} not hold"


def listed(names: Iterable[str]) -> str:
    """The names with commas."""
    return ", ".join(map(one_line, names))


def sizes(finding: Finding) -> str:
    """`B=2 H=3`: the sizes at which it failed, "" where there are none."""
    return " ".join(f"{one_line(name)}={one_line(str(value))}" for name, value in (finding.case or {}).items())


def message(finding: Finding) -> list[str]:
    """What was seen, as lines that are safe to show."""
    lines, left_out = capped(finding.message or "", lines=MESSAGE_LINES, characters=MESSAGE_CHARACTERS)
    return [*lines, f"… {left_out} more lines"] if left_out else lines


def finding_text(finding: Finding) -> str:
    """A finding that does not hold, in a few plain lines: claim, sizes, what was seen, where to look."""
    lines = [plain(finding.claim), sizes(finding), *message(finding)]
    if finding.look_at:
        lines.append(f"look at {plain(finding.look_at)}")
    return "\n".join(line for line in lines if line)


def diagnosis_lead(report: Report) -> str:
    """What the sets of mistakes below it have to do with the attempt."""
    sets = report.diagnosis
    together = len(sets[0].mistakes)
    if not report.explained:
        return "Seen in your code. It may not be all: grade again once it is mended."
    if len(sets) > 1:
        return "Each of these gives exactly the numbers of your code; they cannot be told apart:"
    if together > 1:
        return f"These {together} mistakes together give exactly the numbers of your code:"
    return "This mistake gives exactly the numbers of your code:"


def diagnosis_text(report: Report) -> str:
    """The diagnosis in plain lines, "" where there is none."""
    if not report.diagnosis:
        return ""
    lines = [diagnosis_lead(report)]
    for found in report.diagnosis:
        for number, mistake in enumerate(found.mistakes):
            lines.append(f"{'with it: ' if number else '- '}{one_line(mistake.title)} ({one_line(mistake.id)})")
            lines.append(f"  {plain(mistake.explanation)}")
            if mistake.line is not None:
                source = f": {one_line(mistake.source_line)}" if mistake.source_line else ""
                lines.append(f"  line {mistake.line}{source}")
            lines.append(f"  ask yourself: {plain(mistake.question)}")
    return "\n".join(lines)
