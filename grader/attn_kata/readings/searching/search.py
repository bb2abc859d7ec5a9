"""The search that all kinds of code share: code is asked under readings, and the one with the fewest mistakes is taken.

Names and syntax leave few readings (`building`, `layers`, `calls`). Each becomes an adapter in the attempt's process, which
answers the probes of the diagnosis. The first reading that needs no mistake is taken, then one that needs one, then one that
needs two. Where none of these explains the code, the one is taken under which it is right for the longest. A reading that
departs less is asked earlier. What a name says, or a comment about it, is never overruled by behaviour.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from attn_kata.diagnosis import probing
from attn_kata.diagnosis.departure import traced
from attn_kata.diagnosis.pipeline import Pipeline, Probe
from attn_kata.diagnosis.probing import ProbeResults
from attn_kata.properties.failures import AttemptDied, Raised
from attn_kata.properties.handle import Handle, Transport
from attn_kata.protocol import wire
from attn_kata.readings.adapters import adapter
from attn_kata.readings.asking.limited import Limited
from attn_kata.readings.asking.limits import Limits
from attn_kata.readings.candidates.masks import Said
from attn_kata.readings.choice import Beside, Chosen
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching.behaviour import Asked, Ranked, answers, masked_probe, mistakes, partly, some_probes
from attn_kata.readings.source.structure import Structure

MOST_DEFINITIONS = 4  # tried; a source with twenty classes has few that look like an attention
MOST_MISTAKES = 2  # that a reading may need
MOST_EXPLAINED = {1: 12, 2: 4}  # readings for which sets of one mistake, and of two, are looked for
MOST_FOLLOWED = (
    6  # readings that nothing explains, of which the one is taken under which the code is right for the longest
)

NARROW = re.compile(
    r"(?i)(?:float and double|double and float|float but (?:found|got) double|double but (?:found|got) float|"
    r"input float, batch1: double|(?:c10::)?float != (?:c10::)?double|double != (?:c10::)?float|type float without overflow|"
    r"returned torch\.float32)"
)
Asking = Callable[["Reading"], Asked]


class Adaptable(Transport, Protocol):
    """The connection to an attempt that takes adapters."""

    def adapt(self, adapter: str) -> wire.Reply: ...


@dataclass(kw_only=True)
class Search:
    """One search, for a structure and a contract. `given` are the fields that the user has set."""

    structure: Structure
    contract: Contract
    pipelines: tuple[Pipeline, ...]
    attempt: Adaptable
    reference: Transport
    given: dict[str, object] = field(default_factory=dict)
    returns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # as in kata.toml
    tried: list[str] = field(default_factory=list)  # what was tried in vain, in sentences
    may_die: int = 3  # how often the process may die under readings before AttemptDied is raised
    _asked: dict[str, list[ProbeResults]] = field(default_factory=dict)
    _pipelines: dict[tuple[str, Reading], list[Pipeline]] = field(default_factory=dict)

    def limits(self, reading: Reading) -> Limits:
        """What of the contract the code can be asked under a reading."""
        return Limits(reading=reading, contract=self.contract)

    def chosen(
        self,
        ranked: Ranked,
        *,
        settled: bool = True,
        hint: Said | None = None,
        candidates: tuple[str, ...] = (),
        ties: tuple[Reading, ...] = (),
        doubt: str = "",
        layout_open: bool = False,
        untried: tuple[str, ...] = (),
        without_mask: Raised | None = None,
        raised_by_heads: Raised | None = None,
        mask_untried: str = "",
        switch_untried: tuple[str, ...] = (),
        masks_untried: tuple[str, ...] = (),
        dropout_untried: str = "",
        notes: tuple[str, ...] = (),
        beside: tuple[Beside, ...] = (),
        further: bool = False,
    ) -> Chosen:
        """The reading as chosen, with its adapter."""
        return Chosen(
            reading=ranked.reading,
            adapter=adapter.source_of(ranked.reading, self.contract),
            limits=self.limits(ranked.reading),
            mistakes=ranked.mistakes,
            settled=settled,
            hint=hint,
            candidates=candidates,
            ties=ties,
            doubt=doubt,
            layout_open=layout_open,
            untried=untried,
            without_mask=without_mask,
            raised_by_heads=raised_by_heads,
            mask_untried=mask_untried,
            switch_untried=switch_untried,
            masks_untried=masks_untried,
            dropout_untried=dropout_untried,
            notes=notes,
            beside=beside,
            further=further,
        )

    def best(self, readings: Iterable[Reading], ask: Asking, *, several: bool = False) -> Ranked | None:
        """The first reading that needs the fewest mistakes; one that answers where nothing explains; None if all raise.

        `several`: whether other definitions may be meant, so that it is worth looking for more mistakes in this one.
        """
        answering: list[tuple[Reading, Asked]] = []
        raising: list[Reading] = []
        for reading in readings:
            asked = ask(reading)
            if not answers(asked):
                raising += [reading] if any(raised.frames for _, one in asked for raised in one.raised) else []
                continue
            if mistakes(asked, 0) == 0:
                return Ranked(mistakes=0, reading=reading)
            answering.append((reading, asked))
        answering.sort(key=lambda one: partly(one[1]))
        for most in range(1, MOST_MISTAKES + 1):
            # Sets of two take long. Where there is one reading alone, the diagnosis of the grading looks for them.
            if most > 1 and len(answering) == 1 and not several:
                break
            alike = [
                reading for reading, asked in answering[: MOST_EXPLAINED[most]] if mistakes(asked, most) is not None
            ]
            if alike:
                return Ranked(mistakes=most, reading=alike[0], ties=tuple(alike[1:]))
        if len(answering) > 1 and ask == self.unmasked:
            answering = [max(answering[:MOST_FOLLOWED], key=lambda one: self._how_far(*one))]
        unexplained = [reading for reading, _ in answering] or raising
        return (
            Ranked(mistakes=MOST_MISTAKES + 1, reading=unexplained[0], answers=bool(answering)) if unexplained else None
        )

    def _how_far(self, reading: Reading, asked: Asked) -> int:
        """How much of the right computation the code computes under a reading, on its first probe without a mask."""
        attempt = self.handle(reading)
        if attempt is None:
            return 0
        followed = [one for pipeline, found in asked for one in traced(pipeline, found.first(), attempt)]
        reached = [one.departure for one in followed if one.departure is not None]
        return sum(len(one.right) + (one.factor is not None) for one in reached)

    def handle(self, reading: Reading) -> Handle | None:
        """The code under a reading, to be called without a mask; None where it cannot be adapted."""
        if self.attempt.adapt(adapter.source_of(reading, self.contract)).status != wire.OK:
            return None
        return Handle(Limited(self.attempt, self.limits(reading).without_mask(), attempt=True), self.returns)

    def unmasked(self, reading: Reading) -> Asked:
        """What the code answers without a mask."""
        limits = self.limits(reading).without_mask()
        # Without a mask, nothing depends on its form: the same pipelines, so that what they have computed serves all forms.
        key = ("unmasked", replace(limits.reading, mask_type="bool", shape="any"))
        if key not in self._pipelines:
            of_entry = [limits.pipeline(one) for one in self.pipelines if one.entry == self.contract.entry]
            self._pipelines[key] = [some_probes(one, self._unmasked_probe) for one in of_entry]
        return self.ask(reading, limits, self._pipelines[key])

    def masked(self, reading: Reading) -> Asked:
        """What the code answers with a mask."""
        limits = self.limits(reading)
        with_mask = self.contract.with_mask
        entry = with_mask.entry if with_mask is not None else self.contract.entry
        limits = limits.of_masked_function()
        # The meaning of a mask and its type change what the code gets, and nothing in what is right.
        meaning = "lengths" if reading.mask == "lengths" else "keep"
        key = ("masked", replace(reading, mask=meaning, mask_type="bool"))
        if key not in self._pipelines:
            of_entry = [limits.pipeline(one) for one in self.pipelines if one.entry == entry]
            pipelines = [some_probes(one, masked_probe, most=5) for one in of_entry]
            # The calls of a block have no mask.
            self._pipelines[key] = [one for one in pipelines if one.probes()]
        return self.ask(reading, limits, self._pipelines[key])

    def _unmasked_probe(self, probe: Probe) -> Probe | None:
        place = self.contract.place_of_mask
        if place is None or len(probe.args) <= place:
            return probe
        # A function of the contract takes a mask always: one that hides nothing.
        given = probe.args[place]
        mask = None if self.contract.is_module or given is None else given | True
        return replace(probe, args=(*probe.args[:place], mask))

    def raised(self, reading: Reading, ask: Asking) -> list[str]:
        """The texts of what it raises."""
        return [answer.raised for _, one in ask(reading) for answer in one.answers if answer.raised]

    def in_float32(self, ranked: Ranked | None, ask: Asking) -> Ranked | None:
        """The same; read as code that computes in float32, where it raises for float64 alone and answers for float32."""
        if ranked is None or not ranked.answers or "float32" in self.given:
            return ranked
        if not any(NARROW.search(raised.text) for raised in self.exceptions(ranked.reading, ask)):
            return ranked
        narrow = replace(ranked.reading, float32=True)
        return ranked if self.exceptions(narrow, ask) else replace(ranked, reading=narrow)

    def exceptions(self, reading: Reading, ask: Asking) -> list[Raised]:
        """What it raises."""
        return [raised for _, one in ask(reading) for raised in one.raised]

    def why(self, readings: list[Reading], ask: Asking | None = None) -> str:
        """What the first reading raises, to be said behind a sentence; "" for nothing."""
        asking = ask or self.unmasked
        raised = [text for one in readings[:1] for text in self.raised(one, asking)]
        first = next(iter(self.exceptions(readings[0], asking)), None) if raised else None
        said = raised[0][:200] if raised else ""
        said = said or (first.types[0] if first is not None else "")  # StopIteration has no words
        return f": {said}{first.where if first is not None else ''}" if said else ""

    def ask(self, reading: Reading, limits: Limits, pipelines: list[Pipeline]) -> Asked:
        """What the code answers under a reading; only the first probe where it raises there. No question is asked twice.

        Raises AttemptDied where the process has died too often.
        """
        text = adapter.source_of(reading, self.contract)
        seen = limits.reading
        entries = [one.entry for one in pipelines]
        key = (
            f"{text} {seen.mask} {seen.shape} {seen.causal} {seen.square} {seen.alike} {seen.one_group} "
            f"{seen.one_head} {seen.multiple} "
            f"{seen.float32} {seen.hides_queries} "
            f"{seen.conventions} {seen.returns} {entries}"
        )
        if key not in self._asked:
            asked = []
            if self.attempt.adapt(text).status == wire.OK:
                attempt = Handle(Limited(self.attempt, limits, attempt=True), self.returns)
                reference = Handle(self.reference, self.returns)
                asked = [probing.ask(one, attempt, reference, if_it_answers=True) for one in pipelines]
            self._asked[key] = asked
            self.may_die -= any(one.died for one in asked)
            if self.may_die < 0:
                raise AttemptDied("its process died, or gave no answer in time")
        return list(zip(pipelines, self._asked[key], strict=False))
