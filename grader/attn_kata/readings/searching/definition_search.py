"""The search for the reading of one definition: how it is built, called and masked, and what it returns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from attn_kata.diagnosis.lines import drop_without_a_mode
from attn_kata.diagnosis.outcomes import about_shapes
from attn_kata.diagnosis.symptoms import is_of_none
from attn_kata.readings import advice, conventions
from attn_kata.readings.candidates import building, calls, dropouts, layouts, positions, roles, triangles
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import ONE_QUERY, Pairs, Reading, with_flags
from attn_kata.readings.searching import (
    certain,
    construction,
    lengths,
    masked_search,
    own_triangle,
    ranks,
    returned,
    second_tries,
)
from attn_kata.readings.searching.behaviour import Ranked, answers, mistakes, partly
from attn_kata.readings.searching.construction import OF_MASKS
from attn_kata.readings.searching.mask_forms import MaskForms
from attn_kata.readings.searching.search import MOST_MISTAKES, NARROW, Search
from attn_kata.readings.source import usage
from attn_kata.readings.source.structure import Definition, Parameter, code_of, without_code_in_comments

MOST_CANDIDATES = 32  # readings that are asked
_ASSERTS_FLOAT32 = re.compile(r"assert\b[^\n]*(?:\bFloatTensor|float32|torch\.float\b)")
_PAST_THE_END = re.compile(r"index \d+ is out of bounds for dimension \d with size (\d+)")
_IN_PAIRS = re.compile(r"::\s*2\b|range\([^()\n]*,\s*2\)")
_OF_ONE_LENGTH = (
    "It takes query and key apart, and raises where they differ in length. If it is for self-attention only: "
    "--read square=yes"
)


@dataclass(kw_only=True)
class DefinitionSearch:
    """One search. `mask_of`: how a function of the source that builds a causal mask is read."""

    search: Search
    definition: Definition
    mask_of: Ranked | None = None
    several: bool = False  # whether other definitions may be meant
    sizes_fit: bool = field(default=True, init=False)  # whether the layers have the sizes of the contract's
    switch_untried: tuple[str, ...] = field(
        default=(), init=False
    )  # flags of a mask of its own that no known way explains
    said: tuple[str, ...] = field(default=(), init=False)  # of one of several masks, and of one sequence
    right_beside: tuple[str, ...] = field(default=(), init=False)  # other masks that were tried, each by itself
    further: tuple[str, ...] = field(default=(), init=False)  # parameters that are none of the contract's
    masked_raises: str = field(default="", init=False)  # what it raises with every mask, where it is read without one

    @property
    def contract(self) -> Contract:
        return self.search.contract

    @property
    def given(self) -> dict[str, object]:
        """The fields that the user has set."""
        return self.search.given

    @property
    def text(self) -> str:
        """The definition with all that it uses."""
        return self.search.structure.text(self.definition)

    @property
    def code(self) -> str:
        """The same without comments and docstrings."""
        return code_of(self.text)

    @property
    def forms(self) -> MaskForms:
        """How its mask may be passed."""
        return MaskForms(search=self.search, definition=self.definition)

    @property
    def parameter(self) -> Parameter | None:
        """The parameter of the call that takes a mask, or None."""
        return self.forms.parameter

    @property
    def _said(self) -> str:
        """The text in which a convention may be said: without code in comments, and a mask that a block never hands on."""
        text = without_code_in_comments(self.text)
        given = re.sub(r"\w*mask\w*\s*=\s*None\b", "", code_of(self.definition.text))
        hands_on = re.search("mask", given, re.IGNORECASE)
        return text if hands_on or not self.contract.is_block else re.sub(r"\w*mask\w*", "", text)

    def run(self) -> Ranked | None:
        """The reading that needs the fewest mistakes; None where it cannot be built or called. It may take a second try."""
        said = len(self.search.tried)
        found = self.found()
        taken = []
        for key, is_wanted in second_tries.WAYS.items():
            if key in self.given or not is_wanted(self, found, self.search.tried[said:]):
                continue
            self.given[key] = True
            tried, self.search.tried[said:] = self.search.tried[said:], []
            otherwise = self.found()
            # What it raises on the processor says more than that there is no GPU.
            if _explains_more(otherwise, found) or (key == "processor" and otherwise is not None):
                found = otherwise
                taken.append(key)
                continue
            del self.given[key]
            self.search.tried[said:] = tried
        for key in taken:  # of this definition, and of no other one
            del self.given[key]
        return found and self._dropping(self._of_any_length(found))

    def _of_any_length(self, found: Ranked) -> Ranked:
        """The same; with as many queries as keys only where none of its callers gives it others, and no view of it raises."""
        if not found.reading.square or "square" in self.given:
            return found
        of_any = replace(found.reading, square=False)
        is_given = usage.is_given_another_length(self.definition, self.search.structure)
        if not is_given and not lengths.views_by_another(self, of_any):
            return found
        if not is_given:
            self.said += (_OF_ONE_LENGTH,)
        return replace(found, reading=of_any)

    def _dropping(self, found: Ranked) -> Ranked:
        """The same with a dropout rate, which would only have made the search uncertain, for code that drops in every mode."""
        if "build" in self.given or self.contract.has_dropout or "dropout(" not in self.text:
            return found
        drops = drop_without_a_mode(self.text.encode(), every=True)
        return replace(found, reading=dropouts.dropping(found.reading)) if drops else found

    def found(self) -> Ranked | None:
        """The reading with what is given, in one try."""
        built = construction.built(self.search, self.definition)
        if not built.readings:
            return None
        self.sizes_fit, self.further = built.sizes_fit, built.further
        readings = self._called(built.readings)
        if self.contract.is_cross and all(one.causal for one in readings):
            self._refuse(" always hides later keys, and the kata's cross-attention hides none by itself")
            return None
        if self.contract.is_cross:
            readings = [one for one in readings if not one.causal]
        lacking = self._lacking(readings[:1])
        if lacking:
            self._refuse(f" needs {lacking}, which {advice.NOT_IMPORTED}")
            return None
        parameter = self.parameter if self._may_have_mask else None
        if self.contract.is_block and parameter is not None:
            if "pad" in parameter.name.lower() and parameter.default is not None:
                parameter = None  # it hides padding, and no later keys
            elif not triangles.makes_triangle(self.definition, self.search.structure):
                first = {one.order: one for one in reversed(readings)}
                forms = {order: self.forms.of_a_block(one) for order, one in first.items()}
                readings = [replace(one, **form) for one in readings for form in forms[one.order]]
                parameter = None
        ranked = self._unmasked(readings, needs_mask=parameter is not None)
        lacking = self._lacking(readings) if ranked is None or not ranked.answers else None
        if lacking:  # it got as far as that in another reading than the likeliest
            self._refuse(f" needs {lacking}, which {advice.NOT_IMPORTED}")
            return None
        if ranked is None and certain.returns_nothing(self.definition):
            return Ranked(mistakes=MOST_MISTAKES + 1, reading=readings[0], answers=False)
        if ranked is None:
            self._refuse(f": every call that was tried raises{self.search.why(readings)}")
            return None
        if not ranked.answers and ranked.reading.off and "off" not in self.given:  # there is no other path
            ranked = self._unmasked([replace(one, off=()) for one in readings], needs_mask=False) or ranked
        ranked = self._switched_on(ranks.of_usual_rank(self, ranks.of_any_rank(self, self._as_it_is_built(ranked))))
        ranks.say_one_sequence(self, ranked)
        one_query = ranked.reading.query in ONE_QUERY and not self.contract.has_score  # its mask may have any shape
        if parameter is None or self.contract.is_block or one_query:
            return ranked
        # What raises without a mask, and answers with one, needs it in every call.
        asked = ranked if ranked.answers else replace(ranked, reading=replace(ranked.reading, needs_mask=True))
        masked = masked_search.with_another_mask(self, masked_search.with_mask(self, asked) or ranked, asked)
        if masked.mistakes and not ranked.mistakes and ranked.reading.causal:
            masked = masked_search.in_place_of_its_own(self, readings) or masked
        # A triangle of its own that is wrong, beside a mask that is right: together no known mistake explains them.
        # Nor what is wrong without a mask, where every mask raises: it is named, and the mask is said to be left out.
        alone = ranked.reading.causal and 0 < ranked.mistakes <= MOST_MISTAKES < masked.mistakes
        silent = ranked.answers and not masked.answers and "mask" not in self.given
        known = 0 < ranked.mistakes <= MOST_MISTAKES
        if silent and (known or (ranked.mistakes and not self._raises_by_itself(masked))):
            self.masked_raises = f"{advice.RAISES_WITH_MASK}{self.search.why([masked.reading], self.search.masked)}"
            if known and self._raises_by_itself(masked):  # a mistake too, which is not to be forgotten with the mask
                self.said += (f"Its mask is left out: {self.masked_raises}",)
            return ranked
        return ranked if alone and "mask" not in self.given else masked

    def has_one_width(self, reading: Reading) -> bool:
        """Whether it is built with one width for x and context, for query and keys, or for x and its keys and values."""
        widths = {value for _, value in reading.build} & {"E", "C", "D", "I", "V"}
        if reading.is_one_of_heads or reading.narrow:
            return False
        if self.contract.has_own_sizes:
            return len(widths | ({value for _, value in reading.globals} & {"I", "D", "V"})) == 1
        return len(widths) == 1 if self.contract.has_score else self.contract.is_cross and "C" not in widths

    def _refuse(self, why: str) -> None:
        self.search.tried.append(f"{self.definition.name}{why}")

    @property
    def _may_have_mask(self) -> bool:
        takes_mask = self.contract.place_of_mask is not None or self.contract.with_mask is not None
        return (takes_mask or self.contract.is_block) and self.given.get("mask") != "none"

    def _called(self, built: list[Reading]) -> list[Reading]:
        """The readings of its calls without a mask, the likeliest first."""
        definition, structure, contract = self.definition, self.search.structure, self.contract
        if "build" not in self.given:
            built = [each for one in built for each in building.with_scales(one, self.text)]
        called = [each for one in built for each in calls.with_call(one, definition, structure, contract)]
        if self.mask_of is not None:
            own = {name: getattr(self.mask_of.reading, name) for name in ("builder", "lengths", "mask")}
            with_own = [replace(calls.with_mask_call(one, definition, contract), **own) for one in called]
            called = with_own if self.parameter is not None else with_own + called
        # Of a learned score and a padding mask, keys are hidden for all queries alike; a causal cross-attention is refused.
        may_be_causal = not contract.causal and (contract.mask != "keys" or contract.is_cross)
        if "causal" not in self.given and may_be_causal and self.given.get("by_token"):
            called = [replace(one, causal=True) for one in called]  # later tokens have not come yet
        elif "causal" not in self.given and may_be_causal and triangles.always_causal(definition, structure):
            called = [replace(one, causal=way) for one in called for way in self._causal(called[0])]
        adds = contract.is_module and not (contract.is_block or contract.has_score)  # their sums are their own
        if "residual" not in self.given and adds:
            called = [replace(one, residual=way) for one in called for way in calls.residual(definition, structure)]
        if "conventions" not in self.given and contract.conventions:
            known, said = contract.conventions, self._said
            called = [
                replace(one, conventions=each)
                for one in called
                for each in conventions.ways(known, said, self._has(one) if contract.is_block else {})
                if not {contract.conventions[name].unless_built for name in each} & set(dict(one.build).values())
            ]
        if self.contract.has_own_sizes:  # one size of the code's can stand for all three only where they are equal
            called = [replace(one, alike=self.has_one_width(one)) for one in called]
        of_calls = {key: value for key, value in self.given.items() if key not in OF_MASKS}
        return list(dict.fromkeys(with_flags(one, of_calls) for one in called))[:MOST_CANDIDATES]

    def _has(self, reading: Reading) -> dict[str, bool]:
        """What of a block some conventions are for: a gate of its mlp, and norms that do not centre."""
        structure = self.search.structure
        makers = {maker for one in structure.reach(self.definition) for maker in one.layers.values()}
        own = [one.text for maker in makers if "norm" in maker.lower() and (one := structure.find(maker)) is not None]
        is_rms = any("rms" in text.lower() for text in (*makers, *own))
        return {"gate": bool(reading.mlp_gate.weight), "rms": is_rms}

    def _causal(self, reading: Reading) -> tuple[bool, ...]:
        """Whether code that speaks of a triangle hides later keys by itself, the likeliest first."""
        if triangles.is_switched_off(reading, self.definition):
            return (False, True)
        if triangles.makes_triangle(self.definition, self.search.structure):
            return (True,)  # a triangle that is made and not used would be hidden by the other reading
        # Code that takes a mask may speak of a triangle that it is given.
        return (True, False) if self.parameter is None else (False, True)

    def _unmasked(self, readings: list[Reading], *, needs_mask: bool) -> Ranked | None:
        """The best reading without a mask. Where all raise: with an open mask, or with values as wide as keys."""
        if _ASSERTS_FLOAT32.search(self.code) and "float32" not in self.given:
            readings = [replace(one, float32=True) for one in readings]
        ranked = self.best(readings)
        multiple = self._wanted_multiple(ranked, readings)
        if multiple > 1:
            of_multiples = [replace(one, multiple=multiple) for one in readings]
            found = self.best(of_multiples)
            readings, ranked = (of_multiples, found) if found is not None and found.answers else (readings, ranked)
        if (ranked is None or not ranked.answers) and self.is_narrow(readings):
            readings = [replace(one, float32=True) for one in readings]
            ranked = self.best(readings)
        if (ranked is None or not ranked.answers) and (of_heads := self._with_size_of_heads(readings)):
            found = self.best(of_heads)
            gets_further = self._raises_about_sizes(readings[0]) and not self._raises_about_sizes(of_heads[0])
            if gets_further or (found is not None and found.answers):
                readings, ranked = of_heads, found
        if ranked is None or not ranked.answers:  # by its own mistake, it would raise with any mask
            needs_mask = needs_mask and not certain.raises(readings[0], self.search, self.definition)
        if (ranked is None or not ranked.answers) and needs_mask:
            with_open_mask: list[Reading] = []
            needing = self.best(_kept(self.forms.needing(readings), with_open_mask))
            ranked, readings = (needing, with_open_mask) if needing is not None else (ranked, readings)
        if lengths.has_one_length(self, ranked, readings):
            ranked, readings = lengths.of_one_length(self, ranked, readings, needs_mask=needs_mask)
        one_width = self.has_one_width(readings[0]) and not readings[0].causal
        may_be_alike = not self.contract.is_module or one_width
        if may_be_alike and "alike" not in self.given and self._raises(ranked):
            alike = self.best([replace(one, alike=True) for one in readings])
            ranked = alike if _explains_more(alike, ranked) else ranked
        one_sequence = self.contract.is_self or self.contract.takes_qkv
        one_sequence = one_sequence or (self.contract.is_cross and self.parameter is None)
        one_sequence = one_sequence and not (self.contract.is_module and layouts.says_batch(self.definition))
        if one_sequence and "dims" not in self.given and (ranked is None or not ranked.answers):
            single = self.best([replace(one, dims=2) for one in readings])
            ranked = single if single is not None and single.answers else ranked
        # A context that has the name of one may have a length of its own; of x and y nothing says so.
        unnamed = self.contract.is_cross and roles.is_of_two_unnamed(self.definition)
        may_be_square = self.contract.takes_qkv or not self.contract.is_module or unnamed
        has_triangle = ranked is not None and ranked.mistakes > 0 and any(one.causal for one in readings)
        # Its words say that time comes first, and the code raises so: for one sequence it may be right, or explained.
        is_otherwise = (
            ranked is not None and ranked.mistakes > 0 and ranked.reading.order != "time" == readings[0].order
        )
        is_square = may_be_square and "square" not in self.given
        if is_square and (self._raises(ranked) or has_triangle or is_otherwise):
            # Values as wide as keys would hide a scale of the values' width in code that takes both.
            as_wide = "alike" not in self.given and self._raises(ranked)
            as_wide = as_wide and (not self.contract.is_module or (unnamed and one_width))
            of_one_length = [replace(one, square=True, alike=as_wide or one.alike) for one in readings]
            square = self.best(of_one_length)
            if (square is None or not square.answers) and needs_mask:
                square = self.best(self.forms.needing(of_one_length)) or square
            ranked = square if _explains_more(square, ranked) else ranked
        ranked = self._of_one_query(ranked, readings)
        ranked = own_triangle.causal_after_all(self, ranked)
        if ranked is None or not ranked.answers:  # that it raises by its own mistake says more than that it raises
            own = next((one for one in readings if certain.raises(one, self.search, self.definition)), None)
            if own is None and needs_mask:
                own = next((one for one in readings if self._lacks_its_mask(one)), None)
            ranked = ranked if own is None else self.best([own])
        return self.search.in_float32(ranked, self.search.unmasked)

    def _of_one_query(self, ranked: Ranked | None, readings: list[Reading]) -> Ranked | None:
        """The reading; or, where all raises, with one query at a time: a vector that looks at a sequence."""
        takes_keys = self.contract.is_module and (self.contract.takes_qkv or self.contract.is_cross)
        if not takes_keys or "query" in self.given or (ranked is not None and ranked.answers) or readings[0].causal:
            return ranked
        found = self.best([replace(one, query="(B, E)") for one in readings])
        return found if found is not None and found.answers and found.mistakes <= MOST_MISTAKES else ranked

    def _raises_about_sizes(self, reading: Reading) -> bool:
        """Whether all that it raises without a mask is about shapes."""
        raised = self.search.raised(reading, self.search.unmasked)
        return bool(raised) and all(map(about_shapes, raised))

    def _with_size_of_heads(self, readings: list[Reading]) -> list[Reading]:
        """The readings of code with several heads that is built with two widths, one of which may be the size of a head."""
        if "build" in self.given or not self.contract.is_module or not self.contract.has_heads:
            return []
        found = []
        for one in readings:
            names = [name for name, value in one.build if value == "E"]
            if not {"D", "C"} & {value for _, value in one.build} and "H" in {value for _, value in one.build}:
                found += [replace(one, build=_with(one.build, name, "D")) for name in names[1:]]
        return found[:MOST_CANDIDATES]

    def _raises_by_itself(self, ranked: Ranked) -> bool:
        return certain.raises(ranked.reading, self.search, self.definition)

    def _lacks_its_mask(self, reading: Reading) -> bool:
        """Whether code gets as far as its mask, and raises because it was given none."""
        raised = self.search.exceptions(reading, self.search.unmasked)
        return bool(raised) and all(is_of_none(one.text) for one in raised)

    def _wanted_multiple(self, ranked: Ranked | None, readings: list[Reading]) -> int:
        """What code says by an exception of its own that the size of a head must be a multiple of; 1 for any size."""
        reading = readings[0] if ranked is None else ranked.reading
        if "multiple" in self.given or not self.contract.has_heads or reading.multiple > 1:
            return 1
        raised = self.search.exceptions(reading, self.search.unmasked)
        if raised and positions.makers(self.definition, self.search.structure):
            return 2  # a rotation that it builds
        odd = [found for one in raised if (found := _PAST_THE_END.search(one.text)) and int(found[1]) % 2]
        if odd and _IN_PAIRS.search(self.code):
            return 2  # a table that it fills two by two
        return max((construction.multiple_in(one, self.search.structure) for one in raised), default=1)

    def is_narrow(self, readings: list[Reading]) -> bool:
        """Whether code raises for float64, as it computes with float32 of its own."""
        may_be = "float32" not in self.given and not readings[0].float32
        return may_be and any(NARROW.search(text) for text in self.search.raised(readings[0], self.search.unmasked))

    def _as_it_is_built(self, ranked: Ranked) -> Ranked:
        """The reading; but with the path that it switches off, where that one computes something else."""
        if not ranked.reading.off or "off" in self.given or ranked.mistakes:
            return ranked
        whole = replace(ranked.reading, off=())
        asked = self.search.unmasked(whole)
        differs = answers(asked) and mistakes(asked, 0) is None
        return replace(ranked, reading=whole, mistakes=MOST_MISTAKES + 1) if differs else ranked

    def _switched_on(self, ranked: Ranked) -> Ranked:
        """The reading; but with the triangle that it leaves off, where that one is wrong in a known way.

        For a block, which is causal by its contract, where there are fewer mistakes with the triangle.
        """
        if self.contract.is_block:
            return self._causal_block(ranked)
        if ranked.mistakes or ranked.reading.causal or self.contract.rotation:
            return ranked
        on = triangles.switched_on(ranked.reading, self.definition, self.search.structure)
        if on is None or {"build", "call", "causal"} & set(self.given):
            return ranked
        before = {*ranked.reading.build, *ranked.reading.call}
        switched = [pair for pair in (*on.build, *on.call) if pair not in before]
        if self.contract.mask == "keys":  # which hides keys for all queries alike
            self.switch_untried = tuple(name for name, _ in switched)
            return ranked
        may_be_square = self.contract.takes_qkv or not self.contract.is_module
        ways = [on, replace(on, square=True)] if may_be_square else [on]
        if "L" in dict(on.sizes).values():  # a triangle of one length, which is not cut
            ways.append(replace(on, one_length=True, square=may_be_square))
        for way in ways:
            asked = self.search.unmasked(way)
            count = mistakes(asked, 1) if answers(asked) else None
            if count is not None:
                if not count and way.one_length:
                    self.said += (
                        f"With {', '.join(map('='.join, switched))} it takes only sequences as long as the mask that it makes. "
                        "If it should take shorter ones, this is mask.fixed_size",
                    )
                return replace(ranked, reading=way, mistakes=count) if count else ranked
        self.switch_untried = tuple(name for name, _ in switched)
        return ranked

    def _causal_block(self, ranked: Ranked) -> Ranked:
        on = triangles.switched_on(ranked.reading, self.definition, self.search.structure) if ranked.mistakes else None
        if on is None or {"build", "call"} & set(self.given):
            return ranked
        way = replace(on, causal=ranked.reading.causal)
        asked = self.search.unmasked(way)
        count = mistakes(asked, ranked.mistakes - 1) if answers(asked) else None
        return ranked if count is None else replace(ranked, reading=way, mistakes=count)

    def _raises(self, ranked: Ranked | None) -> bool:
        """Whether the code raises for a probe under the best reading, and a narrower one may explain it."""
        if ranked is None or not ranked.answers:
            return True
        return ranked.mistakes > 0 and partly(self.search.unmasked(ranked.reading))

    def best(self, readings: Iterable[Reading]) -> Ranked | None:
        return self.search.best(
            returned.with_places(self.search, self.definition, readings), self.search.unmasked, several=self.several
        )

    def _lacking(self, readings: list[Reading]) -> str | None:
        """The import without which the code cannot be called, or None."""
        for raised in (raised for one in readings for _, asked in self.search.unmasked(one) for raised in asked.raised):
            name = raised.text.split("'")[1] if raised.types[0] == "NameError" and raised.text.count("'") > 1 else ""
            if name in self.search.structure.imports:
                return self.search.structure.imports[name]
        return None


def _explains_more(one: Ranked | None, other: Ranked | None) -> bool:
    """Whether a reading answers, and the other one does not, or needs more mistakes."""
    return one is not None and one.answers and (other is None or not other.answers or one.mistakes < other.mistakes)


def _kept(readings: Iterator[Reading], seen: list[Reading]) -> Iterator[Reading]:
    """The readings, of which `seen` gets each that somebody has asked for."""
    for one in readings:
        seen.append(one)
        yield one


def _with(build: Pairs, name: str, symbol: str) -> Pairs:
    return tuple((each, symbol if each == name else value) for each, value in build)
