"""Texts that several formats share: the verdict, the counts, a finding, the reason for a skip."""

from __future__ import annotations

import re
from collections.abc import Iterable

from attn_kata.report.model import Example, Finding, NamedMistake, Report
from attn_kata.report.plain import capped, one_line, plain

MESSAGE_LINES = 12
MESSAGE_CHARACTERS = 1_500

VERDICTS = {"passed": "PASSED", "failed": "FAILED", "ungraded": "UNGRADED"}
NOT_WRITTEN = "NOT WRITTEN YET"
AS_READ = "RIGHT, AS READ"
_MARKED = ("failed", "errored")
_COUNTED = {"failed": "failed", "errored": "errored", "skipped": "not tried"}
LEFT_OUT = (
    "left out under this reading"  # how the message of a property begins that makes no sense for code by other names
)
READY_MADE = re.compile(r"calls .*\bready-made", re.DOTALL)


def verdict(report: Report) -> str:
    """One word, or three for the unchanged stub and for right code by other names."""
    if report.reading is not None and report.passed:
        return AS_READ
    return NOT_WRITTEN if report.not_written else VERDICTS[report.outcome]


def headline(report: Report) -> str:
    """The verdict in one line without colour."""
    return f"{verdict(report)}  {report.kata}  {one_line(report.attempt)}  {counts(report)}"


def not_graded(report: Report) -> str:
    """Why nothing, or nothing but the diagnosis, was graded, in one text; "" for what was tested."""
    if report.ungraded_because is None:
        return ""
    begin = "Not graded" if report.outcome == "ungraded" else "Nothing else is graded"
    return f"{begin}: {report.ungraded_because}"


def read_as(report: Report) -> list[str]:
    """How code by other names was read, in a line, and what there is to say of it; [] for the contract's own names."""
    reading = report.reading
    if reading is None:
        return []
    how = "; ".join(f"{one_line(line['what'])} {one_line(line['value'])}" for line in reading["lines"])
    return [
        f"Read as {one_line(reading['kata'])}:  {one_line(reading['entry'])}  {how}",
        *map(one_line, reading["notes"]),
    ]


def is_left_out(finding: Finding) -> bool:
    """Whether the property makes no sense under the reading: it counts neither for the code nor against it."""
    return finding.outcome == "skipped" and (finding.message or "").startswith(LEFT_OUT)


def counts(report: Report) -> str:
    """`9 of 14 core properties hold, 3 failed, 2 not tried; 4 of 5 beyond the bar (reported, never decides)`."""
    edge = [finding.outcome for finding in asked(report, "edge")]
    beyond = f"; {edge.count('passed')} of {len(edge)} beyond the bar (reported, never decides)" if edge else ""
    return core_counts(report) + (beyond if report.outcome != "ungraded" else "")


def core_counts(report: Report) -> str:
    """`9 of 14 core properties hold, 3 failed, 2 not tried`."""
    if report.outcome == "ungraded":
        return "not graded"
    if report.ungraded_because:
        return "no property was tried"
    outcomes = [finding.outcome for finding in asked(report, "core")]
    left_out = sum(is_left_out(finding) for finding in report.findings if finding.tier == "core")
    said = [held_of(report)]
    said += [f"{outcomes.count(outcome)} {word}" for outcome, word in _COUNTED.items() if outcome in outcomes]
    said += [f"{left_out} left out"] * bool(left_out)
    return ", ".join(said)


def held_of(report: Report) -> str:
    """`9 of 14 core properties hold`, or `all 14 core properties hold`."""
    outcomes = [finding.outcome for finding in asked(report, "core")]
    held = outcomes.count("passed")
    which = "core properties that you asked for" if report.part else "core properties"
    hold = "holds" if held == 1 else "hold"
    return (
        f"{held} of {len(outcomes)} {which} {hold}"
        if held < len(outcomes) or held == 1
        else f"all {held} {which} {hold}"
    )


def asked(report: Report, tier: str) -> list[Finding]:
    """The findings of a tier that count: those that its reading does not leave out."""
    return [finding for finding in report.findings if finding.tier == tier and not is_left_out(finding)]


def skipped_because(finding: Finding, held: Iterable[str]) -> str:
    """Why a finding was skipped; `held` are the properties that hold."""
    known = set(held)
    return one_line(finding.message or "") or unmet([need for need in finding.needs if need not in known])


def unmet(needs: list[str]) -> str:
    """`needs mask, values, which do not hold`."""
    return f"needs {listed(needs)}, which {'do' if len(needs) > 1 else 'does'} not hold"


def listed(names: Iterable[str]) -> str:
    """The names with commas."""
    return ", ".join(map(one_line, names))


def sizes(finding: Finding) -> str:
    """`B=2 H=3`: the sizes at which it failed, or ""."""
    return " ".join(f"{one_line(name)}={one_line(str(value))}" for name, value in (finding.case or {}).items())


def message(finding: Finding) -> list[str]:
    """The failure text, as lines that are safe to print."""
    lines, left_out = capped(finding.message or "", lines=MESSAGE_LINES, characters=MESSAGE_CHARACTERS)
    return [*lines, more_lines(left_out)] if left_out else lines


def place(mistake: NamedMistake) -> str:
    """`line 31`, and `cell 3, line 4` in a notebook."""
    return mistake.place or f"line {mistake.line}"


def more_lines(count: int) -> str:
    """`… 3 more lines`."""
    return f"… {count} more line{'' if count == 1 else 's'}"


def finding_text(finding: Finding) -> str:
    """A finding that does not hold, in a few plain lines: claim, sizes, failure text, where to look."""
    lines = [plain(finding.claim), sizes(finding), *message(finding)]
    if finding.look_at:
        lines.append(f"look at {plain(finding.look_at)}")
    return "\n".join(line for line in lines if line)


def failing(report: Report, tier: str = "core") -> list[Finding]:
    """The findings of a tier that do not hold, what matters most first: a ready-made operation, then the order of the tests.

    Where nothing is diagnosed, an exception comes before wrong numbers.
    """
    found = [finding for finding in report.findings if finding.outcome in _MARKED and finding.tier == tier]
    return sorted(found, key=lambda each: (not is_ready_made(each), each.line is None and not report.diagnosis))


def picture_title(picture: Example) -> str:
    """The title above a picture of the attempt's own weights, or of whatever reaches its output."""
    return "What your code attends to" if picture.what.startswith("the weights") else "What reaches your output"


def is_ready_made(finding: Finding) -> bool:
    """Whether the attempt calls what the contract asks it to write."""
    return READY_MADE.match(finding.message or "") is not None


def diagnosis_lead(report: Report) -> str:
    """The sentence above the mistakes: how they relate to the attempt, and what they do not explain."""
    sets = report.diagnosis
    together = len(sets[0].mistakes)
    if not report.explained:
        return "Seen in your code. There may be other mistakes: fix this first, then grade again."
    if not report.reproduced:
        lead = "These mistakes were seen in your code" if together > 1 else "This mistake was seen in your code"
        lead = "One of these was seen in your code" if len(sets) > 1 else lead
    elif len(sets) > 1:
        lead = "Each of these gives exactly the numbers of your code. It is one of them"
    elif together > 1:
        lead = f"These {together} mistakes together give exactly the numbers of your code"
    else:
        lead = "This mistake gives exactly the numbers of your code"
    if report.unexplained:
        return f"{lead}. Something else breaks {listed(report.unexplained)}:"
    return f"{lead}:"


def diagnosis_text(report: Report) -> str:
    """The diagnosis in plain lines, or ""."""
    if not report.diagnosis:
        return ""
    lines = [diagnosis_lead(report)]
    for found in report.diagnosis:
        for number, mistake in enumerate(found.mistakes):
            lines.append(f"{'and: ' if number else '- '}{one_line(mistake.title)} ({one_line(mistake.id)})")
            lines.append(f"  {plain(mistake.explanation)}")
            if mistake.line is not None:
                source = f": {one_line(mistake.source_line)}" if mistake.source_line else ""
                lines.append(f"  {place(mistake)}{source}")
            lines.append(f"  ask yourself: {plain(mistake.question)}")
    return "\n".join(lines)
