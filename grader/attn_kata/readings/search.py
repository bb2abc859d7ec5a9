"""Chooses a reading by behaviour: the one under which the fewest mistakes explain what the code computes.

Names and syntax leave few readings (`building`, `layers`, `calls`). Each becomes an adapter in the attempt's process, which
answers the probes of the diagnosis. The first reading that needs no mistake is taken, then one that needs one, then one that
needs two. A reading that departs less is asked earlier. What a name or a comment says is never overruled by behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from attn_kata.diagnosis import probing
from attn_kata.diagnosis.pipeline import Pipeline, Probe
from attn_kata.diagnosis.probing import ProbeResults
from attn_kata.properties.handle import Handle, Transport, read_raised
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Argument, Build
from attn_kata.readings import (
    adapter,
    blocks,
    builders,
    building,
    calls,
    conventions,
    layers,
    masks,
    rotations,
    vocabulary,
)
from attn_kata.readings.behaviour import Asked, Ranked, answers, masked_probe, mistakes, partly, some_probes
from attn_kata.readings.contract import Contract
from attn_kata.readings.limits import Limited, Limits
from attn_kata.readings.mask_choice import MaskChoice
from attn_kata.readings.reading import Reading, is_path, with_flags
from attn_kata.readings.structure import Definition, Structure, attention_like

MOST_DEFINITIONS = 4  # tried; a source with twenty classes has few that look like an attention
MOST_CANDIDATES = 32  # readings of one definition that are asked
MOST_MISTAKES = 2  # that a reading may need
MOST_EXPLAINED = {1: 12, 2: 1}  # readings for which sets of one mistake, and of two, are looked for
SCORE_SHAPES = ("(B, T)", "(B, 1, T)", "(B, T, T)")  # of a mask of keys, where there are no heads
MOST_FORMS = 3  # of an open mask, for code that raises without one


Asking = Callable[["Reading"], Asked]


class Adaptable(Transport, Protocol):
    """The connection to an attempt that takes adapters."""

    def adapt(self, adapter: str) -> wire.Reply: ...


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The reading that was chosen, and what there is to say of the choice."""

    reading: Reading
    adapter: str
    limits: Limits
    mistakes: int = 0  # that the reading needs, as far as it was looked for
    settled: bool = True  # whether words or names say what the mask means
    candidates: tuple[str, ...] = ()  # other definitions that look like an attention
    ties: tuple[Reading, ...] = ()  # others that need as many mistakes
    doubt: str = ""  # why a failure would be no verdict: nothing explains it, and names and sizes do not bear it out


@dataclass(frozen=True, kw_only=True)
class NotRead:
    """No reading was found. `tried` says what was tried, in sentences."""

    tried: tuple[str, ...]
    candidates: tuple[str, ...] = ()
    nothing: bool = False  # whether nothing in the source looks like an attention


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
    tried: list[str] = field(default_factory=list)
    _several: bool = False  # whether several definitions may be meant
    _mask_of: Ranked | None = None  # how a function that builds a causal mask is read
    _other_sizes: set[object] = field(default_factory=set)  # how code is built whose layers have other sizes
    _asked: dict[str, list[ProbeResults]] = field(default_factory=dict)

    def run(self) -> Chosen | NotRead:
        """The reading, or what was tried. Raises AttemptDied when the attempt's process has died too often."""
        if self.contract.rotation:
            return self._rotation()
        wanted = self.given.get("entry")
        like = blocks.block_like if self.contract.is_block else attention_like
        fitting = [one for one in like(self.structure) if calls.fits(one, self.contract)]
        if wanted:
            named = self.structure.find(str(wanted))
            fitting = [named] if named is not None else []
            if named is None:
                self.tried.append(f"there is no '{wanted}' in the file")
        builder = builders.find(self.structure) if self.contract.builder else None
        if "builder" in self.given:
            builder = self.structure.find(str(self.given["builder"]))
        if builder is not None and (not fitting or wanted == builder.name):
            return self._only_a_mask(builder, tuple(one.name for one in fitting))
        if builder is not None:
            self._mask_of = self._built_mask(builder)
        self._several = len(fitting) > 1
        best: tuple[int, int, Ranked, Definition] | None = None
        for place, definition in enumerate(fitting[:MOST_DEFINITIONS]):
            found = self._read(definition)
            if found is not None and (best is None or (found.mistakes, place) < best[:2]):
                best = (found.mistakes, place, found, definition)
            if best is not None and best[0] <= MOST_MISTAKES:
                break  # the likeliest definition that can be explained
        others = tuple(one.name for one in fitting if best is None or one.name != best[3].name)
        if best is None:
            if not fitting and not wanted:
                self.tried.append("nothing in the file looks like an attention that this kata could grade")
            return NotRead(tried=tuple(self.tried), candidates=others, nothing=not fitting and not wanted)
        reading = best[2].reading
        settled = reading.mask not in ("keep", "hide") or "mask" in self.given or self._documented(best[3]) is not None
        builder = self.structure.find(reading.builder) if reading.builder else None
        settled = settled or (builder is not None and builders.documented(builder) is not None)
        return Chosen(
            reading=reading,
            adapter=adapter.source_of(reading, self.contract),
            limits=Limits(reading=reading, contract=self.contract),
            mistakes=best[0],
            settled=settled,
            candidates=others,
            ties=tuple(one for one in best[2].ties if _means(one) != _means(reading)),
            doubt=self._doubt(best[2], best[3]) if best[0] > MOST_MISTAKES else "",
        )

    def _rotation(self) -> Chosen | NotRead:
        """The reading of a source that turns vectors by their positions."""
        wanted = self.given.get("entry")
        found = [one for one in rotations.find(self.structure) if not wanted or one.name == wanted]
        named = self.structure.find(str(wanted)) if wanted else None
        found = found or ([named] if named is not None else [])
        others: list[str] = [one.name for one in found]
        best: Ranked | None = None
        for definition in found[:MOST_DEFINITIONS]:
            ways = rotations.readings(definition, self.structure, self.contract.kata)
            own = list(dict.fromkeys(with_flags(one, self.given) for one in ways))
            ranked = self._best(own, self._turning)
            if (ranked is None or not self._takes_both(ranked.reading)) and "positions" not in self.given:
                # Where it raises for positions by sample, it is given those of one sample after the other.
                each = self._best(rotations.by_sample(own), self._turning)
                ranked = each if each is not None and (ranked is None or each.mistakes < ranked.mistakes) else ranked
            if ranked is None:
                why = self._why(own, self._turning)
                self.tried.append(f"{definition.name}: every call that was tried raises{why}")
            elif best is None or ranked.mistakes < best.mistakes:
                best = ranked
            if best is not None and best.mistakes <= MOST_MISTAKES:
                break
        if best is None:
            if not found:
                self.tried.append("nothing in the file looks like a rotation by positions")
            return NotRead(tried=tuple(self.tried), candidates=tuple(others), nothing=not found)
        return Chosen(
            reading=best.reading,
            adapter=adapter.source_of(best.reading, self.contract),
            limits=Limits(reading=best.reading, contract=self.contract),
            mistakes=best.mistakes,
            candidates=tuple(one for one in others if one != best.reading.entry),
            doubt="" if best.answers else f"every call that was tried raises{self._why([best.reading], self._turning)}",
        )

    def _takes_both(self, reading: Reading) -> bool:
        """Whether code answers for positions of all samples and by sample."""
        asked = self._turning(reading)
        return answers(asked) and not partly(asked)

    def _turning(self, reading: Reading) -> Asked:
        limits = Limits(reading=reading, contract=self.contract)
        return self._ask(reading, limits, [limits.pipeline(one) for one in self.pipelines])

    def _only_a_mask(self, builder: Definition, others: tuple[str, ...]) -> Chosen | NotRead:
        """The reading of a source with a function that builds a causal mask, and no attention that fits."""
        found = self._built_mask(builder)
        if found is None:
            tried = f"{builder.name}: every call that was tried raises"
            return NotRead(tried=(*self.tried, tried), candidates=others)
        reading = found.reading
        return Chosen(
            reading=reading,
            adapter=adapter.source_of(reading, self.contract),
            limits=Limits(reading=reading, contract=self.contract),
            mistakes=found.mistakes,
            settled=reading.mask == "additive" or "mask" in self.given or builders.documented(builder) is not None,
            candidates=others,
        )

    def _built_mask(self, builder: Definition) -> Ranked | None:
        pipelines = [one for one in self.pipelines if one.entry == self.contract.builder]
        empty = Reading(kata=self.contract.kata, entry=builder.name, is_class=False)

        def ask(reading: Reading) -> Asked:
            return self._ask(reading, Limits(reading=reading, contract=self.contract), pipelines)

        of_mask = {key: value for key, value in self.given.items() if key in ("mask", "lengths")}
        return self._best((with_flags(one, of_mask) for one in builders.readings(empty, builder)), ask)

    def _doubt(self, ranked: Ranked, definition: Definition) -> str:
        if not ranked.answers:
            masked = ranked.reading.mask != "none"
            why = self._why([ranked.reading], self._masked if masked else self._unmasked)
            return f"every call that was tried {'with a mask ' if masked else ''}raises{why}"
        if self._is_guess(ranked.reading, definition):
            return (
                "no known mistake explains its numbers as it was built, and its names do not say how it is to be built"
            )
        return ""

    def _is_guess(self, reading: Reading, definition: Definition) -> bool:
        """Whether sizes of layers or names of constructor's arguments do not say that the code was built as it is meant."""
        text = self.structure.text(definition)
        named = [name.rpartition(".")[2] for name, value in reading.build if value in ("E", "H", "D", "C", "I", "V")]
        return _structure_of(reading) in self._other_sizes or any(
            vocabulary.size_in(name, text) is None for name in named
        )

    # ------------------------------------------------------------------------------------------- one definition

    def _read(self, definition: Definition) -> Ranked | None:
        built = self._built(definition)
        if not built:
            return None
        called = [each for one in built for each in calls.with_call(one, definition, self.structure, self.contract)]
        if self._mask_of is not None:
            own = {name: getattr(self._mask_of.reading, name) for name in ("builder", "lengths", "mask")}
            with_own = [replace(calls.with_mask_call(one, definition, self.contract), **own) for one in called]
            called = with_own if calls.mask_parameter(definition, self.contract) is not None else with_own + called
        causal = calls.always_causal(definition, self.structure) and not self.contract.causal
        if causal and "causal" not in self.given:
            # Code that takes a mask may speak of a triangle that it is given.
            ways: tuple[bool, ...] = (
                (True, False) if calls.mask_parameter(definition, self.contract) is None else (False, True)
            )
            if calls.is_switched_off(called[0], definition):
                ways = (False, True)
            elif calls.makes_triangle(definition, self.structure):
                ways = (True,)  # a triangle that is made and not used would be hidden by the other reading
            called = [replace(one, causal=way) for one in called for way in ways]
        if calls.residual(definition, self.structure) and "residual" not in self.given and self.contract.is_module:
            called = [replace(one, residual=way) for one in called for way in (False, True)]
        if "conventions" not in self.given and self.contract.conventions:
            sets = conventions.ways(self.contract.conventions, self.structure.text(definition))
            called = [replace(one, conventions=each) for one in called for each in sets]
        of_calls = {key: value for key, value in self.given.items() if key not in _OF_MASKS}
        unmasked = list(dict.fromkeys(with_flags(one, of_calls) for one in called))[:MOST_CANDIDATES]
        parameter = calls.mask_parameter(definition, self.contract) if self._has_mask() else None
        if self.given.get("mask") == "none":
            parameter = None
        lacking = self._lacking(unmasked)
        if lacking:
            self.tried.append(f"{definition.name} needs {lacking}, which could not be imported")
            return None
        if self.contract.is_block and parameter is not None and "pad" in parameter.name.lower():
            if parameter.default is None:
                self.tried.append(f"{definition.name} needs a mask of padding, and a block of the kata is given none")
                return None
            parameter = None  # it hides padding, and no later keys
        if self.contract.is_block and parameter is not None and not calls.makes_triangle(definition, self.structure):
            given = [each for one in unmasked[:MOST_FORMS] for each in self._with_forms(one, definition)]
            parameter, unmasked = None, given
        ranked = self._best(self._with_returns(unmasked, definition), self._unmasked)
        if (ranked is None or not ranked.answers) and parameter is not None:
            ranked = (
                self._best(self._with_returns(self._needing(unmasked, definition), definition), self._unmasked)
                or ranked
            )
        if (ranked is None or not ranked.answers) and not self.contract.is_module and "alike" not in self.given:
            alike = self._best(
                self._with_returns([replace(one, alike=True) for one in unmasked], definition), self._unmasked
            )
            ranked = alike if alike is not None and alike.answers else ranked
        if ranked is None:
            self.tried.append(f"{definition.name}: every call that was tried raises{self._why(unmasked)}")
            return None
        if parameter is None or self.contract.is_block:
            return ranked
        return self._with_mask(ranked, definition) or ranked

    def _lacking(self, readings: list[Reading]) -> str | None:
        """The import without which the code cannot be called, or None."""
        for one in readings[:1]:
            for raised in (raised for _, asked in self._unmasked(one) for raised in asked.raised):
                name = (
                    raised.text.split("'")[1] if raised.types[0] == "NameError" and raised.text.count("'") > 1 else ""
                )
                if name in self.structure.imports:
                    return self.structure.imports[name]
        return None

    def _needing(self, readings: list[Reading], definition: Definition) -> list[Reading]:
        """The readings with an open mask in every call, in the first forms to which the code gives any answer."""
        found = []
        ways = [(one.order, one.query) if self.contract.has_score else () for one in readings]
        for way in dict.fromkeys(ways):  # where the layout of a query is open, the mask's form is looked for in each
            of_way = [one for one, other in zip(readings, ways, strict=True) if other == way]
            for fields in self._open_forms(of_way[0], definition):
                found += [replace(one, **fields) for one in of_way]
        return found

    def _open_forms(self, reading: Reading, definition: Definition) -> list[dict[str, Any]]:
        forms: list[dict[str, Any]] = []
        for one in self._with_forms(replace(reading, needs_mask=True), definition):
            if answers(self._unmasked(one)) or any("returned a" in text for text in self._raised(one, self._unmasked)):
                forms.append(
                    {name: getattr(one, name) for name in ("mask", "mask_type", "shape", "call", "needs_mask")}
                )
            if len(forms) == MOST_FORMS:
                break
        return forms

    def _has_mask(self) -> bool:
        return self.contract.place_of_mask is not None or self.contract.with_mask is not None or self.contract.is_block

    def _built(self, definition: Definition) -> list[Reading]:
        """Readings that build, with every place of the parameters that the names leave open."""
        reasons = []
        fallback: list[Reading] = []  # it builds, and its layers have other sizes
        of_build = {key: value for key, value in self.given.items() if key in ("build", "globals", "off", "bypassed")}
        for one in dict.fromkeys(
            with_flags(each, of_build) for each in building.buildings(definition, self.structure, self.contract)
        ):
            if not self.contract.is_module:
                return [with_flags(one, {key: value for key, value in self.given.items() if key not in _OF_MASKS})]
            shapes = self._shapes(one)
            if isinstance(shapes, str):
                reasons.append(shapes)
                continue
            places = blocks.with_layers if self.contract.is_block else layers.with_layers
            readings = places(one, shapes, definition, self.structure, self.contract)
            if isinstance(readings, str):
                reasons.append(readings)
                continue
            of_layers = {key: value for key, value in self.given.items() if key in _OF_LAYERS}
            if of_layers and not readings:
                readings = [one]
            readings = list(dict.fromkeys(with_flags(each, of_layers) for each in readings))
            if readings and (of_build or layers.plausible(readings[0], shapes, self.contract)):
                return readings
            if readings:
                fallback = fallback or readings
                continue
            names = ", ".join(f"{name} {shape}" for name, shape in list(shapes.items())[:12]) or "none"
            reasons.append(f"its parameters do not say which are q, k and v ({names})")
        if fallback:
            self._other_sizes |= {_structure_of(one) for one in fallback}
            return fallback
        self.tried.append(f"{definition.name}: {reasons[0] if reasons else 'it takes no sizes that are known'}")
        return []

    def _shapes(self, reading: Reading) -> layers.Shapes | str:
        """The shapes of the code's own parameters, or why it cannot be built."""
        reply = self.attempt.adapt(adapter.builder(reading))
        if reply.status == wire.OK:
            look = building.LOOK
            args: tuple[Argument, ...] = tuple(
                ("value", look[name]) for name in ("E", "H", "D", "C", "p", "I", "V", "L", "G", "M")
            )
            reply = self.attempt.ask(Build(name=adapter.BUILDER, module=0, seed=0, args=args))
        if reply.status == wire.RAISED:
            raised = read_raised(reply.texts)
            how = ", ".join(f"{name}={value}" for name, value in reading.build)
            return f"{reading.entry}({how}) raises {raised.types[0]}: {raised.text}"[:300]
        if reply.status != wire.OK:
            return (reply.texts[0] if reply.texts else "it cannot be built")[:300]
        told = zip(reply.texts, reply.tensors, strict=True)
        return {name: part.shape for name, part in told if is_path(name)}  # what a stranger says goes into an adapter

    def _with_returns(self, readings: list[Reading], definition: Definition) -> Iterator[Reading]:
        """Each reading, and where the code returns a tuple the readings of its places instead."""
        for one in readings:
            raised = self._raised(one, self._unmasked)
            found = next(
                (text for text in raised if "returned a tuple of" in text or "returned a list of" in text), None
            )
            if found is None or "returns" in self.given:
                yield one
                if self.contract.has_score and "returns" not in self.given:
                    yield replace(one, returns="weights")
                continue
            count = int(
                "".join(letter for letter in found.partition(" of ")[2].partition(";")[0] if letter.isdecimal())[:2]
                or 1
            )
            names = next((names for names in definition.returned if len(names) == count), ())
            places = sorted(
                range(min(count, 4)), key=lambda place: bool(names and vocabulary.NOT_OUTPUT.search(names[place]))
            )
            beside = [place for place in places if names and vocabulary.NOT_OUTPUT.search(names[place])] or places[1:]
            if self.contract.returns and beside:  # weights that are returned are asked for
                yield replace(one, returns=f"{places[0]},{beside[0]}")
                continue
            yield from (replace(one, returns=str(place)) for place in places)
            if self.contract.has_score:
                yield from (replace(one, returns=f"weights:{place}") for place in reversed(places))

    def _with_mask(self, ranked: Ranked, definition: Definition) -> Ranked | None:
        """The reading with the mask, in the form that needs the fewest mistakes."""
        choice = MaskChoice(
            ask=self._masked,
            unmasked=self._unmasked(ranked.reading),
            none_explains=MOST_MISTAKES + 1,
            of_tokens=self.contract.mask == "scores" and not self.contract.is_cross and not self.contract.takes_qkv,
        )
        found = choice.best(self._with_forms(ranked.reading, definition))
        if found is None:
            return None
        of_mask = {name: getattr(found.reading, name) for name in (*_OF_MASKS, "call", "hides_queries")}
        ties = (*found.ties, *(replace(one, **of_mask) for one in ranked.ties))
        least = 0 if found.mistakes <= MOST_MISTAKES else ranked.mistakes
        return replace(found, mistakes=max(found.mistakes, least), ties=ties)

    def _with_forms(self, reading: Reading, definition: Definition) -> Iterator[Reading]:
        """The reading with a mask, in each form that words and names leave open."""
        parameter = calls.mask_parameter(definition, self.contract)
        assert parameter is not None
        said = str(self.given["mask"]) if "mask" in self.given else self._documented(definition)
        called = calls.with_mask_call(reading, definition, self.contract)
        forms = masks.forms(self.structure.text(definition), parameter.name, said)
        if self.contract.has_score:
            order = {shape: place for place, shape in enumerate(SCORE_SHAPES)}
            shaped = (form for form in forms if form.shape in order or form.mask == "lengths")
            forms = iter(sorted(shaped, key=lambda form: order.get(form.shape, -1)))
        yield from dict.fromkeys(
            with_flags(replace(called, mask=form.mask, shape=form.shape, mask_type=form.mask_type), self.given)
            for form in forms
        )

    def _documented(self, definition: Definition) -> str | None:
        parameter = calls.mask_parameter(definition, self.contract)
        return None if parameter is None else masks.documented(self.structure.text(definition), parameter.name)

    # ----------------------------------------------------------------------------------------------- behaviour

    def _best(self, readings: Iterable[Reading], ask: Asking) -> Ranked | None:
        """The first reading that needs the fewest mistakes; one that answers where nothing explains; None if all raise."""
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
            if most > 1 and len(answering) == 1 and not self._several:
                break
            alike = [
                reading for reading, asked in answering[: MOST_EXPLAINED[most]] if mistakes(asked, most) is not None
            ]
            if alike:
                return Ranked(mistakes=most, reading=alike[0], ties=tuple(alike[1:]))
        unexplained = [reading for reading, _ in answering] or raising
        return (
            Ranked(mistakes=MOST_MISTAKES + 1, reading=unexplained[0], answers=bool(answering)) if unexplained else None
        )

    def _unmasked(self, reading: Reading) -> Asked:
        limits = Limits(reading=reading, contract=self.contract).without_mask()
        pipelines = [limits.pipeline(one) for one in self.pipelines if one.entry == self.contract.entry]
        return self._ask(reading, limits, [some_probes(one, self._unmasked_probe) for one in pipelines])

    def _masked(self, reading: Reading) -> Asked:
        limits = Limits(reading=reading, contract=self.contract)
        with_mask = self.contract.with_mask
        entry = with_mask.entry if with_mask is not None else self.contract.entry
        limits = limits.of_masked_function()
        pipelines = [limits.pipeline(one) for one in self.pipelines if one.entry == entry]
        return self._ask(reading, limits, [some_probes(one, masked_probe, most=5) for one in pipelines])

    def _unmasked_probe(self, probe: Probe) -> Probe | None:
        place = self.contract.place_of_mask
        if place is None or len(probe.args) <= place:
            return probe
        # A function of the contract takes a mask always: one that hides nothing.
        given = probe.args[place]
        mask = None if self.contract.is_module or given is None else given | True
        return replace(probe, args=(*probe.args[:place], mask))

    def _raised(self, reading: Reading, ask: Asking) -> list[str]:
        return [answer.raised for _, one in ask(reading) for answer in one.answers if answer.raised]

    def _why(self, readings: list[Reading], ask: Asking | None = None) -> str:
        raised = [text for one in readings[:1] for text in self._raised(one, ask or self._unmasked)]
        return f": {raised[0][:200]}" if raised else ""

    def _ask(self, reading: Reading, limits: Limits, pipelines: list[Pipeline]) -> Asked:
        """What the code answers under a reading; only the first probe where it raises there. No question is asked twice."""
        text = adapter.source_of(reading, self.contract)
        seen = limits.reading
        entries = [one.entry for one in pipelines]
        key = (
            f"{text} {seen.mask} {seen.shape} {seen.causal} {seen.square} {seen.alike} {seen.hides_queries} "
            f"{seen.conventions} {seen.returns} {entries}"
        )
        if key not in self._asked:
            asked = []
            if self.attempt.adapt(text).status == wire.OK:
                attempt = Handle(Limited(self.attempt, limits, attempt=True), self.returns)
                reference = Handle(self.reference, self.returns)
                for one in pipelines:
                    first = probing.ask(some_probes(one, lambda probe: probe, most=1), attempt, reference)
                    answered = any(answer.output is not None for answer in first.answers)
                    asked.append(probing.ask(one, attempt, reference) if answered else first)
            self._asked[key] = asked
        return list(zip(pipelines, self._asked[key], strict=False))


def _means(reading: Reading) -> object:
    """What a person would want to choose; not the type or the number of dimensions of an argument."""
    return replace(reading, dims=0, mask_type="bool", shape="any", call=(), returns="", query="")


def _structure_of(reading: Reading) -> object:
    return reading.entry, reading.build, reading.q, reading.k, reading.v, reading.o


_OF_MASKS = ("mask", "mask_type", "shape")
_OF_LAYERS = ("q", "k", "v", "o", "fused", "arrangement")
