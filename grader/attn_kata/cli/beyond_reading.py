"""What a reading leaves out of code that is right as far as it goes is graded by itself: its mask, and its cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from attn_kata.cli.output import warn
from attn_kata.readings import advice, further
from attn_kata.readings.candidates import caching
from attn_kata.report.model import Report

Graded = Callable[..., Report]  # of a kata, flags, properties where not all are asked, and the most seconds
_MASK, _CACHE = "ts mask is not tried", "ts cache is not tried"  # of notes and departures, without the first letter
_CHUNKS = 2
_MOST_BESIDE = 2
_VALUES = "values"
_ALIKE = "With its cache, one token after the other, it gives the same"
_OTHERWISE = "With its cache, one token after the other, it gives other numbers, and no known mistake explains them"
_NO_MASK, _ONE_LENGTH = "mask=none", "square=yes"
_RIGHT_WITHOUT_MASK = "Without its mask it is right, as {kata} (--mask none shows it)"
_NO_OUTPUT = "output.missing"
_NEW_ONLY = "cache.new_only"
_RETURNS_NEW = "It takes the keys of all earlier tokens, and returns those of the new ones alone"


def tried(whole: Report, source: bytes, graded: Graded) -> Report:
    """The report of `source`, with what comes of its mask and of its cache; `graded` grades it as a kata, with flags.

    Where one of these fails by a known mistake, its report is the one.
    """
    if whole.outcome != "passed" or whole.reading is None:
        return whole
    masked = _with_mask(whole, whole.reading["entry"], graded)
    return masked if masked.outcome != "passed" else _with_cache(masked, source, graded)


def without_mask(report: Report, graded: Graded) -> Report:
    """The report; of code that raises with every mask, with a note where it is right without one."""
    if advice.RAISES_WITH_MASK not in (report.ungraded_because or ""):
        return report
    if graded(report.kata, (_NO_MASK,)).outcome != "passed":
        return report
    return replace(report, notes=[*report.notes, _RIGHT_WITHOUT_MASK.format(kata=report.kata)])


def of_one_length(report: Report, graded: Graded) -> Report:
    """The report; of code that raises for some lengths only, that of the code with as many queries as keys, where it is right.

    As much tiled code counts its tiles of keys by the number of queries.
    """
    if advice.RAISES_FOR_SOME not in (report.ungraded_because or "") or report.reading is None:
        return report
    square = graded(report.kata, (*report.reading["flags"], _ONE_LENGTH))
    return square if square.outcome == "passed" else report


def beside(report: Report, source: bytes, graded: Graded) -> Report:
    """The report of right code, with a note for each other attention of the file: right, or which mistake it has."""
    if report.outcome != "passed" or report.reading is None:
        return report
    entry, notes = report.reading["entry"], []
    for slug, name in further.beside(source, entry)[:_MOST_BESIDE]:
        other = graded(slug, (f"entry={name}",))
        ids = [mistake.id for one in other.diagnosis[:1] for mistake in one.mistakes]
        if other.outcome == "passed":
            notes.append(f"{name}, also in this file, is right too, as {slug}")
        elif other.outcome == "failed" and ids:
            shows = f"--kata {slug} --class {name} shows it"
            notes.append(f"{name}, also in this file, is not right: {', '.join(ids)}. {shows}")
    return replace(report, notes=[*report.notes, *notes])


def without_output(whole: Report, source: bytes, graded: Graded) -> Report:
    """The report of right code; failed, where its heads are joined and added as they are: then no layer is elsewhere."""
    if whole.outcome != "passed" or whole.reading is None:
        return whole
    flags, says = further.without_output(source, whole.reading)
    lacking = graded(whole.kata, flags) if flags else whole
    named = {mistake.id for one in lacking.diagnosis for mistake in one.mistakes}
    if lacking.outcome != "failed" or _NO_OUTPUT not in named:
        return whole
    warn(f"{whole.reading['entry']} is right up to its output layer. {says}:")
    return lacking


def _with_mask(whole: Report, entry: str, graded: Graded) -> Report:
    assert whole.reading is not None
    found = further.with_mask(whole.reading)
    if found is None:
        return whole
    masked = graded(*found)
    ids = [mistake.id for one in masked.diagnosis[:1] for mistake in one.mistakes]
    if masked.outcome == "failed" and masked.was_tested and any(id.startswith("mask.") for id in ids):
        warn(f"{entry} is right without a mask, as {whole.kata}. With its mask, as {masked.kata}, it is not:")
        return masked
    if masked.outcome == "passed":
        return _noted(whole, _MASK, f"With its mask it is right too, as {masked.kata} (--kata {masked.kata} shows it)")
    return whole


def _with_cache(whole: Report, source: bytes, graded: Graded) -> Report:
    """Code that takes one new token only is no mistake: what several do is a note.

    Only the values are asked, as everything else has been asked of whole sequences.
    """
    assert whole.reading is not None
    flags = further.through_cache(source, whole.reading)
    if not flags:
        return whole
    turns = any(flag.startswith(("unturned=", "angles=")) for flag in whole.reading["flags"])
    unturned = ", without its rotary positions" * turns
    alike = _ALIKE + unturned
    masked = (
        any(flag.startswith("mask=") for flag in whole.reading["flags"]) and "mask=none" not in whole.reading["flags"]
    )
    untried = "Several new tokens, and its mask beside a cache, are" if masked else "Several new tokens are"
    several = f"{alike}. {untried} not tried"
    # Which of several new tokens see which is otherwise for the caller to say.
    if "causal=yes" in whole.reading["flags"]:
        chunks = graded(whole.kata, further.through_cache(source, whole.reading, _CHUNKS), (_VALUES,))
        if chunks.outcome == "passed":  # a text of an even length ends with one token
            calls = f"with {_CHUNKS} new tokens in a call and with one"
            return _noted(whole, _CACHE, f"With its cache, {calls}, it gives the same{unturned}")
        seen = chunks.diagnosis[:1] if chunks.was_tested else []
        named = [f"{mistake.title} ({mistake.id})" for one in seen for mistake in one.mistakes]
        what = f"not right: {', '.join(named)}" if named else f"not graded: {_why(chunks)}"
        several = f"{alike}. With {_CHUNKS} new tokens after earlier ones it is {what}"
    by_token = graded(whole.kata, flags, (_VALUES,))
    if by_token.outcome == "passed":
        return _noted(whole, _CACHE, several)
    sets = [{mistake.id for mistake in one.mistakes} for one in by_token.diagnosis]
    if by_token.was_tested and {_NEW_ONLY} in sets:
        return _noted(whole, _CACHE, f"{_RETURNS_NEW}. If its caller does not join them, this is {_NEW_ONLY}")
    if by_token.was_tested and sets:
        entry = whole.reading["entry"]
        warn(f"{entry} is right for whole sequences. With its cache, one token after the other, it is not:")
        return graded(whole.kata, flags)
    if (by_token.ungraded_because or "").startswith("under this reading"):
        return _noted(whole, _CACHE, f"{_OTHERWISE}. If the code is called so, its cache is wrong")
    return _noted(whole, _CACHE, f"Its cache could not be graded: {_why(by_token)}")


def _why(report: Report) -> str:
    """Why a report has no verdict, without what to do about it."""
    why = report.ungraded_because or "no known mistake explains what fails"
    if "Sizes of tensors must match except in dimension" in why:
        raised = why.rpartition("raises: ")[2].partition(". ")[0]
        return f"{raised}. If it joins past and new keys there, this is cache.wrong_axis"
    if (nothing := caching.HANDS_BACK_NOTHING) in why:
        return nothing
    return why.partition(" could not be read as ")[2].partition(": ")[2].partition(". ")[0] or why.partition(". ")[0]


def _noted(report: Report, untried: str, note: str) -> Report:
    """The report with this note in the place of those that say that something is not tried."""
    assert report.reading is not None
    notes, departures = (
        [one for one in report.reading[key] if not one[1:].startswith(untried)] for key in ("notes", "departures")
    )
    return replace(report, reading={**report.reading, "notes": [*notes, note], "departures": departures})
