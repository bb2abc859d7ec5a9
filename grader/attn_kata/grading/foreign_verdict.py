"""Whether what fails of code by other names is a verdict, or the code may have been read wrong."""

from __future__ import annotations

from attn_kata.diagnosis import own_exceptions
from attn_kata.diagnosis.departure import CONTEXT
from attn_kata.diagnosis.diagnose import Diagnosed
from attn_kata.grading import unread
from attn_kata.grading.foreign import Read
from attn_kata.properties.failures import AttemptRaised, NoAnswer, PropertyFailed, ReadyMade
from attn_kata.readings import advice
from attn_kata.readings.candidates import layouts
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching import certain, doubts
from attn_kata.readings.source import vocabulary
from attn_kata.report.model import Finding

_SURE_IN_PART = ("scale.", "softmax.")
# An mlp whose layers are read wrong adds nothing; and weights may be what a class is for, and its caller mixes values by them.
_OF_A_READING = {"block.branch_missing", "output.weights"}
_AS_CONDITION = "mask.as_condition"
_OF_BOOLEANS = "mask.bool_arithmetic"  # where numbers raise in the place of booleans too, the mask is not the reason


def no_verdict(
    read: Read, findings: list[Finding], failures: dict[str, PropertyFailed], diagnosed: Diagnosed
) -> str | None:
    """Why a failure that the diagnosis does not explain is no verdict: the code may have been read wrong. Or None.

    Of public code that failed so and that was judged by hand, as much was right as wrong.
    """
    doubt = read.chosen.doubt or read.raises
    if read.chosen.reading.sure or _explains(read, failures, diagnosed):
        return None
    if any(isinstance(one, ReadyMade) for one in failures.values()) and _is_meant(read):
        return None
    seen = diagnosed.departures
    mixes = any(one.mixes for one in seen) and all(one.mixes or one.factor == 1 for one in seen)
    if mixes and (not doubt or doubt.startswith(doubts.RAISES)):
        return None  # its weights are right, so it is read right, and what it does with them is not
    if not doubt and diagnosed.diagnoses and _is_right_up_to_k(findings, failures, diagnosed):
        return None  # beside something unknown, which without a known mistake could be another kind of attention
    if not doubt:
        return _fails_unexplained(read, findings, failures, "".join(f" {one}." for one in seen[:1]))
    how = ", ".join(f"{name}={value}" for name, value in read.chosen.reading.build)
    tried = f"{read.chosen.reading.entry}({how}): {doubt}"
    say = advice.on(tried) + ("" if doubt.startswith(doubts.RAISES) else unread.IF_SURE)
    return unread.NOT_READ.format(kata=read.source.contract.kata, tried=tried, say=say)


def _is_meant(read: Read) -> bool:
    """Whether it is the definition that was named, or the likeliest one, and not one that was read in its place."""
    first = read.source.definition()
    named = any(one.startswith("entry=") for one in read.source.flags)
    return named or first is None or first.name == read.chosen.reading.entry


def _fails_unexplained(
    read: Read, findings: list[Finding], failures: dict[str, PropertyFailed], so_far: str
) -> str | None:
    """What fails first, where it is numbers, or numbers and exceptions; None for what says by itself what is wrong.

    `so_far` says how far it is right.
    """
    core = [one for one in findings if one.tier == "core" and one.property in failures]
    told = [failures[one.property] for one in core]
    raised = [one for one in told if isinstance(one, AttemptRaised)]
    if not core or all(isinstance(one, NoAnswer) for one in told) or fails_by_itself(read, raised):
        return None
    return unread.UNEXPLAINED.format(property=core[0].property, message=core[0].message, so_far=so_far)


def _explains(read: Read, failures: dict[str, PropertyFailed], diagnosed: Diagnosed) -> bool:
    """Whether the diagnosis names what the code does.

    Not what only a guess at how it is called looks like, nor numbers in which unknown parameters have a part.
    """
    # What does not fit where it raises may not fit because of how it was read.
    ids = [one.id for each in diagnosed.diagnoses for one in each.mistakes if one.id not in diagnosed.of_ending]
    of_a_guess = read.chosen.layout_open and all(id.startswith(("output.", "layout.")) for id in ids)
    # What it returns is its own, and only where nothing was explained no part of it was taken.
    of_a_guess |= set(ids) == {"output.tuple"}
    # That it wants float32 says nothing of numbers that nothing explains in float32 either.
    of_a_guess |= bool(read.chosen.doubt) and set(ids) <= {"numerics.default_dtype", "numerics.forced_float32"}
    # An exception may come of how it was read; whether it is the code's own is looked at apart.
    of_exceptions = (
        {*own_exceptions.IDS, _OF_BOOLEANS}
        | diagnosed.of_ending
        | ({_AS_CONDITION} if read.chosen.reading.mask == "none" else set())
    )
    of_a_guess |= set(ids) <= of_exceptions and not diagnosed.reproduced
    # The width of a layer may be a guess, where the code raises with it.
    of_a_guess |= set(ids) == {"project.shared"} and any(isinstance(one, AttemptRaised) for one in failures.values())
    # Of one sequence, .T is right; what raises is something else.
    of_a_guess |= set(ids) == {"layout.T_of_batch"} and layouts.says_one_sequence(read.text)
    # Where something else is unknown, which mask and which of its layers is meant may be read wrong as well.
    of_a_guess |= set(ids) <= diagnosed.in_part and not any(
        id.startswith(_sure_in_part(diagnosed, read.chosen.reading)) for id in ids
    )
    # What takes one input for keys and values, and has a layer for queries too, may mean the projected keys for its values.
    reading = read.chosen.reading
    projects_both = bool(reading.layer("q").weight) and bool(reading.layer("k").weight)
    of_a_guess |= reading.keys_are_values and projects_both and set(ids) == {"mix.keys"}
    of_a_guess |= not _OF_A_READING.isdisjoint(ids)
    # Of a function, the number that divides its scores may be one that its file or its caller sets.
    of_a_guess |= set(ids) == {"scale.other"} and not reading.is_class
    of_norms = set(ids) == {"scale.missing"} and bool(doubts.of_norms(read.chosen.reading))
    return bool(ids) and not of_a_guess and not of_norms and not read.chosen.further


def fails_by_itself(read: Read, raised: list[AttemptRaised]) -> bool:
    """Whether one of these exceptions is certainly a mistake of the code's."""
    source = read.source.structure
    definition = source.find(read.chosen.reading.entry)
    if definition is None:
        return False
    if read.chosen.raised_by_heads is not None:
        return True
    text = read.text
    return certain.returns_nothing(definition) or any(
        certain.is_own_mistake(one.raised, text, source) for one in raised
    )


def _is_right_up_to_k(findings: list[Finding], failures: dict[str, PropertyFailed], diagnosed: Diagnosed) -> bool:
    """Whether the values fail without a mask, and q and k are right on every probe, so that the code is read right.

    With a mask, its form may be read wrong.
    """
    first = next((one.property for one in findings if one.tier == "core" and one.property in failures), "")
    return (
        first == "values"
        and not isinstance(failures[first], NoAnswer)
        and bool(diagnosed.departures)
        and all({"q", "k"} <= set(one.right) for one in diagnosed.departures)
    )


def _sure_in_part(diagnosed: Diagnosed, reading: Reading) -> tuple[str, ...]:
    """How the ids begin that are certain beside an unknown mistake.

    Where q, k and v are right, its layers are read right; where the context is, what makes it is known, too.
    """
    right = [set(one.right) for one in diagnosed.departures]
    projected = bool(right) and all({"q", "k", "v"} <= one for one in right)
    mixed = bool(right) and all(CONTEXT in one for one in right)
    named = all(
        vocabulary.role_of(reading.layer(role).weight.removesuffix(".weight")) == role for role in ("q", "k", "v")
    )
    sure = _SURE_IN_PART + ("split.",) * (projected or mixed) + ("score.",) * mixed
    return sure + ("project.",) * (mixed and named)
