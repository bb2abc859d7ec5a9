"""The search for the reading of one definition: how it is built, called and masked, and what it returns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from attn_kata.properties.failures import Raised
from attn_kata.readings import (
    advice,
    building,
    calls,
    certain,
    construction,
    conventions,
    doubts,
    masks,
    positions,
    roles,
    scores,
    second_tries,
    triangles,
    usage,
    vocabulary,
)
from attn_kata.readings.behaviour import Ranked, answers, averages, fits, mistakes, partly
from attn_kata.readings.building import LOOK
from attn_kata.readings.construction import OF_MASKS
from attn_kata.readings.contract import Contract
from attn_kata.readings.mask_choice import MaskChoice
from attn_kata.readings.reading import TIME_FIRST_SHAPES, Reading, with_flags
from attn_kata.readings.returned import parts_of
from attn_kata.readings.search import MOST_MISTAKES, NARROW, Search
from attn_kata.readings.structure import Definition, Parameter, code_of

MOST_CANDIDATES = 32  # readings that are asked
_WITH_HEADS = ("any", "(B, H, T, T)", "(B, 1, T, T)", "(T, T)", "(B, 1, 1, T)")  # not (B, T, T)
MOST_PLACES = 4  # of a tuple; the output is never further behind
_ASSERTS_FLOAT32 = re.compile(r"assert\b[^\n]*(?:\bFloatTensor|float32|torch\.float\b)")
_EVEN = re.compile(r"(?i)\beven\b|(?:divisible by|multiple of) (?:2|two)\b|% 2 ==")
MOST_OTHER_MASKS = 2  # that are tried beside the first
MOST_FORMS = 3  # of an open mask, for code that raises without one
SCORE_SHAPES = ("(B, T)", "(B, 1, T)", "(B, T, T)", "(T, B)")  # of a mask of keys, where there are no heads

# Shapes in comments and docstrings: of one sequence, and of a batch.
_LENGTH = r"(?:[tnsl]|tq|tk|seq\w*|len\w*|\w*_len\w*|\w*tokens?|num_\w+)"
_ONE_SEQUENCE = re.compile(
    rf"(?:#.*|\"\"\"[^\"]*)[(\[]\s*{_LENGTH}\s*,\s*(?!{_LENGTH}\s*[)\]])[a-z]\w*\s*[)\]]", re.IGNORECASE
)
_BATCH = re.compile(r"batch|\bb\s*,\s*\w+\s*,|\(\s*b\s*,", re.I)


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
    def parameter(self) -> Parameter | None:
        """The parameter of the call that takes a mask, or None."""
        return roles.mask_parameter(self.definition, self.contract)

    @property
    def _said(self) -> str:
        """The text in which a convention may be said. A mask that a block never hands on is none of it."""
        given = re.sub(r"\w*mask\w*\s*=\s*None\b", "", code_of(self.definition.text))
        hands_on = re.search("mask", given, re.IGNORECASE)
        return self.text if hands_on or not self.contract.is_block else re.sub(r"\w*mask\w*", "", self.text)

    @property
    def documented(self) -> str | None:
        """What words and names say of True in the mask, or None."""
        return None if self.parameter is None else masks.documented(self._about_masks, self.parameter.name)

    @property
    def _about_masks(self) -> str:
        """The text of what it uses and that has to do with the mask: "if True" in a helper's words is about something else."""
        assert self.parameter is not None
        about = re.compile(rf"mask|{re.escape(self.parameter.name)}", re.IGNORECASE)
        return "\n".join(one.text for one in self.search.structure.reach(self.definition) if about.search(one.text))

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
            if _explains_more(otherwise, found):
                found = otherwise
                taken.append(key)
                continue
            del self.given[key]
            self.search.tried[said:] = tried
        for key in taken:  # of this definition, and of no other one
            del self.given[key]
        return found and self._dropping(self._of_any_length(found))

    def _of_any_length(self, found: Ranked) -> Ranked:
        """The same; with as many queries as keys only where none of its callers gives it others."""
        square = found.reading.square and "square" not in self.given
        if not square or not usage.is_given_another_length(self.definition, self.search.structure):
            return found
        return replace(found, reading=replace(found.reading, square=False))

    def _dropping(self, found: Ranked) -> Ranked:
        """The same with a dropout rate, which would only have made the search uncertain."""
        if "build" in self.given:
            return found
        return replace(found, reading=building.dropping(found.reading, self.text, self.contract))

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
                forms = {order: self._forms_of_a_block(one) for order, one in first.items()}
                readings = [replace(one, **form) for one in readings for form in forms[one.order]]
                parameter = None
        ranked = self._unmasked(readings, needs_mask=parameter is not None)
        if ranked is None and certain.returns_nothing(self.definition):
            return Ranked(mistakes=MOST_MISTAKES + 1, reading=readings[0], answers=False)
        if ranked is None:
            self._refuse(f": every call that was tried raises{self.search.why(readings)}")
            return None
        if not ranked.answers and ranked.reading.off and "off" not in self.given:  # there is no other path
            ranked = self._unmasked([replace(one, off=()) for one in readings], needs_mask=False) or ranked
        ranked = self._switched_on(self._of_usual_rank(self._of_any_rank(self._as_it_is_built(ranked))))
        if parameter is None or self.contract.is_block:
            return ranked
        # What raises without a mask, and answers with one, needs it in every call.
        asked = ranked if ranked.answers else replace(ranked, reading=replace(ranked.reading, needs_mask=True))
        masked = self._with_another_mask(self._with_mask(asked) or ranked, asked)
        if masked.mistakes and not ranked.mistakes and ranked.reading.causal:
            masked = self._in_place_of_its_own(readings) or masked
        # A triangle of its own that is wrong, beside a mask that is right: together no known mistake explains them.
        # Nor what is wrong without a mask, where every mask raises: it is named, and the mask is said to be left out.
        alone = ranked.reading.causal and 0 < ranked.mistakes <= MOST_MISTAKES < masked.mistakes
        if ranked.mistakes and ranked.answers and not masked.answers and "mask" not in self.given:
            self.masked_raises = f"{doubts.RAISES_WITH_MASK}{self.search.why([masked.reading], self.search.masked)}"
            return ranked
        return ranked if alone and "mask" not in self.given else masked

    def has_one_width(self, reading: Reading) -> bool:
        """Whether it is built with one width for x and context, for query and keys, or for x and its keys and values."""
        widths = {value for _, value in reading.build} & {"E", "C", "D", "I", "V"}
        if reading.is_one_of_heads:
            return False
        if self.contract.has_own_sizes:
            return len(widths | ({value for _, value in reading.globals} & {"I", "D", "V"})) == 1
        return len(widths) == 1 if self.contract.has_score else self.contract.is_cross and "C" not in widths

    def mask_untried(self, reading: Reading) -> str:
        """The parameter that takes a mask, where the reading leaves it out; or ""."""
        passed = any(value == "mask" for _, value in reading.call)
        return "" if passed or self.parameter is None else self.parameter.name

    def masks_untried(self, reading: Reading) -> tuple[str, ...]:
        """The other parameters of the call that take masks, and are left out: those that were not tried apart."""
        others = roles.other_masks(self.definition, reading, self.contract)
        return tuple(name for name in others if name not in self.right_beside and name not in self._never_read(others))

    def _never_read(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the names that the code has nowhere but among its parameters, and where it does nothing."""
        code = re.sub(r"if \w+ is (?:not )?None\s*:\s*pass\b|\bdel \w+\b|\b_ = \w+$", "", self.code, flags=re.MULTILINE)
        return tuple(name for name in names if len(re.findall(rf"\b{re.escape(name)}\b", code)) == 1)

    def notes(self, reading: Reading, *, answers: bool) -> tuple[str, ...]:
        """What is to be said of the masks that the code takes, and of its dimensions, in sentences.

        `answers`: whether the code does so under the reading, and does not raise in every call.
        """
        others = roles.other_masks(self.definition, reading, self.contract)
        if not any(value == "mask" for _, value in reading.call):
            others = tuple(one.name for one in self.definition.call if vocabulary.input_of(one.name) == "mask")
        said = [
            f"The call takes {name}, and nothing reads it. If it is meant to hide keys, this is mask.lost"
            for name in self._never_read(others)
        ]
        said += [
            f"Its constructor takes {name}, and nothing reads it. If it is meant to hide keys, this is mask.lost"
            for name in self._never_read(tuple(one.name for one in self.definition.build if "mask" in one.name.lower()))
        ]
        if reading.returns_weights and (after := scores.layers_after(self.definition)):
            said.append(f"Its output goes through {after[0]} and is not graded: its weights are")
        if raised := self.without_mask(reading, answers=answers):
            why = f": {raised.text.partition(' - got')[0][:100]}" if raised.text else ""
            said.append(
                f"Without its mask, which its call allows to leave out, it raises {raised.types[0]}{why}. "
                "All else is graded with a mask in every call"
            )
        parameter = self.parameter
        of_samples = None if parameter is None else masks.documented_for_samples(self.definition.text, parameter.name)
        if of_samples is not None and answers and self.contract.has_heads and reading.shape in _WITH_HEADS:
            said.append(
                f"Its text says that {parameter.name} has the shape {of_samples}. With that shape it raises, or lays the "  # type: ignore[union-attr]
                "samples on the heads. If its callers give that, this is mask.broadcast"
            )
        return (*dict.fromkeys(self.said), *said)

    def without_mask(self, reading: Reading, *, answers: bool) -> Raised | None:
        """What code that is asked with a mask in every call raises without one, where the call allows to leave it out."""
        parameter = self.parameter
        if not answers or not reading.needs_mask or parameter is None or parameter.default != "None":
            return None
        without = replace(reading, mask="none", needs_mask=False, call=self._without_mask(reading))
        return next(iter(self.search.exceptions(without, self.search.unmasked)), None)

    def _without_mask(self, reading: Reading) -> tuple[tuple[str, str], ...]:
        return tuple((name, value) for name, value in reading.call if value != "mask")

    def _refuse(self, why: str) -> None:
        self.search.tried.append(f"{self.definition.name}{why}")

    @property
    def _may_have_mask(self) -> bool:
        takes_mask = self.contract.place_of_mask is not None or self.contract.with_mask is not None
        return (takes_mask or self.contract.is_block) and self.given.get("mask") != "none"

    # ------------------------------------------------------------------------------------------------------ calls

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
        if "causal" not in self.given and may_be_causal and triangles.always_causal(definition, structure):
            called = [replace(one, causal=way) for one in called for way in self._causal(called[0])]
        if "residual" not in self.given and contract.is_module and not contract.is_block:  # a block's sums are its own
            called = [replace(one, residual=way) for one in called for way in calls.residual(definition, structure)]
        if "conventions" not in self.given and contract.conventions:
            sets = conventions.ways(contract.conventions, self._said)
            called = [
                replace(one, conventions=each)
                for one in called
                for each in sets
                if not {contract.conventions[name].unless_built for name in each} & set(dict(one.build).values())
            ]
        if self.contract.has_own_sizes:  # one size of the code's can stand for all three only where they are equal
            called = [replace(one, alike=self.has_one_width(one)) for one in called]
        of_calls = {key: value for key, value in self.given.items() if key not in OF_MASKS}
        return list(dict.fromkeys(with_flags(one, of_calls) for one in called))[:MOST_CANDIDATES]

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
        ranked = self._best(readings)
        if "even" not in self.given and self.contract.has_heads and self._wants_even(ranked, readings):
            of_even = [replace(one, even=True) for one in readings]
            found = self._best(of_even)
            readings, ranked = (of_even, found) if found is not None and found.answers else (readings, ranked)
        if (ranked is None or not ranked.answers) and self._is_narrow(readings):
            readings = [replace(one, float32=True) for one in readings]
            ranked = self._best(readings)
        if (ranked is None or not ranked.answers) and needs_mask:
            with_open_mask = self._needing(readings)
            needing = self._best(with_open_mask)
            ranked, readings = (needing, with_open_mask) if needing is not None else (ranked, readings)
        if self._has_one_length(ranked, readings):
            ranked, readings = self._of_one_length(ranked, readings, needs_mask=needs_mask)
        one_width = self.has_one_width(readings[0]) and not readings[0].causal
        may_be_alike = not self.contract.is_module or one_width
        if may_be_alike and "alike" not in self.given and self._raises(ranked):
            alike = self._best([replace(one, alike=True) for one in readings])
            ranked = alike if _explains_more(alike, ranked) else ranked
        one_sequence = self.contract.is_self or self.contract.takes_qkv
        one_sequence = one_sequence or (self.contract.is_cross and self.parameter is None)
        if one_sequence and "dims" not in self.given and (ranked is None or not ranked.answers):
            single = self._best([replace(one, dims=2) for one in readings])
            ranked = single if single is not None and single.answers else ranked
        # A context that has the name of one may have a length of its own; of x and y nothing says so.
        unnamed = self.contract.is_cross and roles.is_of_two_unnamed(self.definition)
        may_be_square = self.contract.takes_qkv or not self.contract.is_module or unnamed
        own_triangle = ranked is not None and ranked.mistakes > 0 and any(one.causal for one in readings)
        if may_be_square and "square" not in self.given and (self._raises(ranked) or own_triangle):
            as_wide = "alike" not in self.given and (not self.contract.is_module or (unnamed and one_width))
            of_one_length = [replace(one, square=True, alike=as_wide or one.alike) for one in readings]
            square = self._best(of_one_length)
            if (square is None or not square.answers) and needs_mask:
                square = self._best(self._needing(of_one_length)) or square
            ranked = square if _explains_more(square, ranked) else ranked
        if ranked is None or not ranked.answers:  # that it raises by its own mistake says more than that it raises
            own = next((one for one in readings if certain.raises(one, self.search, self.definition)), None)
            ranked = ranked if own is None else self._best([own])
        return self.search.in_float32(ranked, self.search.unmasked)

    def _wants_even(self, ranked: Ranked | None, readings: list[Reading]) -> bool:
        """Whether code says by an exception of its own that the size of a head must be even."""
        reading = readings[0] if ranked is None else ranked.reading
        raised = self.search.exceptions(reading, self.search.unmasked)
        if raised and positions.makers(self.definition, self.search.structure):
            return True  # a rotation that it builds
        refusals = [one for one in raised if one.types[0] in ("AssertionError", "ValueError")]
        lines = [self.search.structure.line(one.frames[-1][0]) for one in refusals if one.frames]
        return any(_EVEN.search(text) for text in (*(one.text for one in refusals), *lines))

    def _is_narrow(self, readings: list[Reading]) -> bool:
        """Whether code raises for float64, as it computes with float32 of its own."""
        may_be = "float32" not in self.given and not readings[0].float32
        return may_be and any(NARROW.search(text) for text in self.search.raised(readings[0], self.search.unmasked))

    def _has_one_length(self, ranked: Ranked | None, readings: list[Reading]) -> bool:
        """Whether all raises, and what it raises is about the length that the code was built with."""
        built = [value for one in readings[:1] for _, value in one.sizes]
        if (ranked is not None and ranked.answers) or "L" not in built or "one_length" in self.given:
            return False
        raised = [text for one in readings for text in self.search.raised(one, self.search.unmasked)]
        return self.contract.is_module and any(re.search(rf"\b{LOOK['L']}\b", text) for text in raised)

    def _of_one_length(
        self, ranked: Ranked | None, readings: list[Reading], *, needs_mask: bool
    ) -> tuple[Ranked | None, list[Reading]]:
        """The best reading of code that is built anew for each length, and the readings that were tried; or what was best."""
        square = self.contract.takes_qkv and "square" not in self.given
        tried = [replace(one, one_length=True, square=square or one.square) for one in readings]
        found = self._best(tried)
        if (found is None or not found.answers) and needs_mask:
            tried = self._needing(tried)
            found = self._best(tried)
        return (found, tried) if found is not None and found.answers else (ranked, readings)

    def _as_it_is_built(self, ranked: Ranked) -> Ranked:
        """The reading; but with the path that it switches off, where that one computes something else."""
        if not ranked.reading.off or "off" in self.given or ranked.mistakes:
            return ranked
        whole = replace(ranked.reading, off=())
        asked = self.search.unmasked(whole)
        differs = answers(asked) and mistakes(asked, 0) is None
        return replace(ranked, reading=whole, mistakes=MOST_MISTAKES + 1) if differs else ranked

    def _switched_on(self, ranked: Ranked) -> Ranked:
        """The reading; but with the triangle that it leaves off, where that one is wrong in a known way."""
        if ranked.mistakes or ranked.reading.causal or self.contract.is_block or self.contract.rotation:
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

    def _of_any_rank(self, ranked: Ranked) -> Ranked:
        """The reading; but of any number of dimensions for a function, and of a batch for a module, that raises for none.

        Read for two alone, a softmax along dimension 1, or along none that is named, would be right.
        """
        has_batch = not self.contract.is_module or "dims" in self.contract.left_out
        if ranked.reading.dims != 2 or not has_batch or "dims" in self.given or self._says_one_sequence():
            return ranked
        whole = replace(ranked.reading, dims=3 if self.contract.is_module else 0)
        asked = self.search.unmasked(whole)
        if partly(asked) or not fits(asked):
            return ranked
        count = mistakes(asked, MOST_MISTAKES)
        if count != 0 and not ranked.mistakes:
            self.said += ("It is right for one sequence, (T, E). If you meant that: --read dims=2",)
        return replace(ranked, reading=whole, mistakes=MOST_MISTAKES + 1 if count is None else count)

    def _says_one_sequence(self) -> bool:
        """Whether its shapes in words are those of one sequence, `(T, E)`, and never those of a batch."""
        return _ONE_SEQUENCE.search(self.text) is not None and _BATCH.search(self.text) is None

    def _of_usual_rank(self, ranked: Ranked) -> Ranked:
        """The reading; but with heads or a batch before the tokens, for a function that cannot do without: "b ... t d"."""
        if self.contract.is_module or ranked.reading.dims or ranked.mistakes or "dims" in self.given:
            return ranked
        if answers(self.search.unmasked(replace(ranked.reading, dims=2))):
            return ranked
        for dims in (4, 3):
            usual = replace(ranked.reading, dims=dims)
            asked = self.search.unmasked(usual)
            if answers(asked) and mistakes(asked, 0) == 0:
                return replace(ranked, reading=usual)
        return ranked

    def _raises(self, ranked: Ranked | None) -> bool:
        """Whether the code raises for a probe under the best reading, and a narrower one may explain it."""
        if ranked is None or not ranked.answers:
            return True
        return ranked.mistakes > 0 and partly(self.search.unmasked(ranked.reading))

    def _best(self, readings: list[Reading]) -> Ranked | None:
        return self.search.best(self._with_returns(readings), self.search.unmasked, several=self.several)

    def _lacking(self, readings: list[Reading]) -> str | None:
        """The import without which the code cannot be called, or None."""
        for raised in (raised for one in readings for _, asked in self.search.unmasked(one) for raised in asked.raised):
            name = raised.text.split("'")[1] if raised.types[0] == "NameError" and raised.text.count("'") > 1 else ""
            if name in self.search.structure.imports:
                return self.search.structure.imports[name]
        return None

    # --------------------------------------------------------------------------------------------------- the result

    def _with_returns(self, readings: Iterable[Reading]) -> Iterator[Reading]:
        """Each reading, and where the code returns a tuple the readings of its places instead."""
        for one in readings:
            raised = self.search.raised(one, self.search.unmasked)
            found = next((parts for text in raised if (parts := parts_of(text))), ())
            if not found or "returns" in self.given:
                yield one
                if self.contract.has_score and "returns" not in self.given:
                    yield replace(one, returns="weights")
                continue
            has_names = not found[0].isdecimal()
            names = (
                found if has_names else next((each for each in self.definition.returned if len(each) == len(found)), ())
            )
            first = range(min(len(found), MOST_PLACES))
            named = [place for place in first if not names or names[place]]  # not the None of (out, None)
            places = sorted(named, key=lambda place: bool(names and vocabulary.is_beside(names[place])))
            beside = [place for place in places[1:] if names and vocabulary.is_beside(names[place])] or places[1:]
            if self.contract.returns and beside:  # weights that are returned are asked for
                both = replace(one, returns=f"{found[places[0]]},{found[beside[0]]}")
                yield both
                asked = self.search.unmasked(both)
                if averages(asked):  # a convention, and no mistake
                    yield replace(one, returns=found[places[0]])
                elif not fits(asked):  # no weights, but a cache; or names that say it the other way round
                    yield replace(one, returns=f"{found[beside[0]]},{found[places[0]]}")
                    yield from (replace(one, returns=found[place]) for place in places)
                continue
            outputs = [replace(one, returns=found[place]) for place in places]
            yield from outputs
            # Weights beside an output are not taken in its place: what is wrong in the output would be hidden.
            is_named = any(names and vocabulary.is_output(names[place]) for place in places)
            is_there = is_named or any(fits(self.search.unmasked(each)) for each in outputs)
            is_there = is_there and not scores.layers_after(self.definition)  # which no kata has
            if self.contract.has_score and not is_there:
                yield from (replace(one, returns=f"weights:{found[place]}") for place in reversed(places))

    # ----------------------------------------------------------------------------------------------------- the mask

    def _needing(self, readings: list[Reading]) -> list[Reading]:
        """The readings with an open mask in every call, in the first forms to which the code gives any answer."""
        found = []
        ways = [
            (one.order, one.query, one.call) if self.contract.has_score else (one.order, one.dims) for one in readings
        ]
        for way in dict.fromkeys(ways):  # where the layout of the inputs is open, the mask's form is looked for in each
            of_way = [one for one, other in zip(readings, ways, strict=True) if other == way]
            for fields in self._open_forms(of_way[0]):
                found += [replace(one, **fields) for one in of_way]
        return found

    def _forms_of_a_block(self, reading: Reading) -> list[dict[str, Any]]:
        """How a mask may be passed to a block: for each meaning of it the first form that the code takes, or all of them."""
        every = list(self._with_forms(reading))
        taken: dict[str, Reading] = {}
        for one in every:
            if one.mask in taken:
                continue
            asked = self.search.unmasked(one)
            if fits(asked) or (not answers(asked) and self._takes(one)):
                taken[one.mask] = one
        names = ("mask", "mask_type", "shape", "call", "needs_mask")
        return [{name: getattr(one, name) for name in names} for one in taken.values() or every[:MOST_FORMS]]

    def _open_forms(self, reading: Reading) -> list[dict[str, Any]]:
        """How an open mask may be passed to code that needs one: the first forms that it takes, of each meaning at least one.

        What hides nothing in one meaning hides everything in another.
        """
        every = list(self._with_forms(replace(reading, needs_mask=True)))
        meanings = {one.mask for one in every}
        taken: list[Reading] = []
        narrow: list[Reading] = []  # it raises for some inputs: a mask (B, H, T, T) that is cut as one (T, T)
        for one in every:
            alike = sum(other.mask == one.mask for other in taken)
            if alike < MOST_FORMS and self._takes(one):
                (narrow if partly(self.search.unmasked(one)) else taken).append(one)
            if len(taken) >= MOST_FORMS and {each.mask for each in taken} == meanings:
                break
        taken += narrow
        first = {one.mask: one for one in reversed(taken)}
        likeliest = [*first.values(), *(one for one in taken if one is not first[one.mask])][:MOST_FORMS]
        names = ("mask", "mask_type", "shape", "call", "needs_mask")
        return [{name: getattr(one, name) for name in names} for one in taken if one in likeliest]

    def _takes(self, reading: Reading) -> bool:
        """Whether the code gives any answer; if only a tuple, whose parts are looked for later."""
        unmasked = self.search.unmasked
        return answers(unmasked(reading)) or any("returned a" in text for text in self.search.raised(reading, unmasked))

    def _with_mask(self, ranked: Ranked) -> Ranked | None:
        """The reading with the mask, in the form that needs the fewest mistakes."""
        contract = self.contract
        choice = MaskChoice(
            ask=self.search.masked,
            unmasked=self.search.unmasked(ranked.reading),
            none_explains=MOST_MISTAKES + 1,
            of_tokens=contract.mask == "scores" and not contract.is_cross,
            if_square=contract.takes_qkv,
        )
        found = choice.best(self._with_forms(ranked.reading))
        if (found is None or not found.answers) and not contract.is_module and "square" not in self.given:
            one_shape = replace(ranked.reading, square=True, alike="alike" not in self.given or ranked.reading.alike)
            square = choice.best(self._with_forms(one_shape))
            found = square if square is not None and (found is None or square.answers) else found
        if not contract.is_module and not ranked.reading.dims and (found is None or found.mistakes > MOST_MISTAKES):
            found = self._of_one_rank(ranked) or found  # its mask says how many dimensions it takes
        if found is None:
            return None
        if not found.answers:
            found = self._failing_by_itself(ranked.reading) or found
        of_mask = {
            name: getattr(found.reading, name)
            for name in (*OF_MASKS, "call", "hides_queries", "square", "alike", "dims")
        }
        ties = (*found.ties, *(replace(one, **of_mask) for one in ranked.ties))
        least = 0 if found.mistakes <= MOST_MISTAKES else ranked.mistakes
        return replace(found, mistakes=max(found.mistakes, least), ties=ties)

    def _failing_by_itself(self, reading: Reading) -> Ranked | None:
        """Of code that raises with every mask, the form that it takes up to a mistake of its own; or None."""
        one_each = {form.shape: form for form in reversed(list(self._with_forms(reading)))}
        for form in reversed(one_each.values()):
            if certain.raises(form, self.search, self.definition):
                return Ranked(mistakes=MOST_MISTAKES + 1, reading=form, answers=False)
        return None

    def _of_one_rank(self, ranked: Ranked) -> Ranked | None:
        """A function with its mask, with so many dimensions that a known number of mistakes explains it; else None."""
        for dims in (4, 3) if "dims" not in self.given else ():
            found = self._with_mask(replace(ranked, reading=replace(ranked.reading, dims=dims)))
            if found is not None and found.answers and found.mistakes <= MOST_MISTAKES:
                return found
        return None

    def _in_place_of_its_own(self, readings: list[Reading]) -> Ranked | None:
        """The reading of code that hides later keys only where it is given no mask, if it is right with one; else None."""
        if {"causal", "mask"} & set(self.given):
            return None
        found = self._best(self._needing([replace(one, causal=False) for one in readings]))
        masked = None if found is None or found.mistakes or not found.answers else self._with_mask(found)
        if masked is None or masked.mistakes or not masked.answers:
            return None
        self.said += ("Where it is given no mask, it hides later keys, and that is right, too",)
        return masked

    def _with_another_mask(self, masked: Ranked, ranked: Ranked) -> Ranked:
        """The reading; but with another mask of the call in the place of the first, where that one is wrong in a known way."""
        if masked.mistakes or "call" in self.given or "mask" in self.given or self.contract.with_mask is not None:
            return masked
        for name in roles.other_masks(self.definition, masked.reading, self.contract)[:MOST_OTHER_MASKS]:
            if name in self._never_read((name,)):
                continue
            others = {one.name for one in self.definition.call if vocabulary.input_of(one.name) == "mask"} - {name}
            alone = replace(self.definition, call=tuple(one for one in self.definition.call if one.name not in others))
            found = replace(self, definition=alone)._with_mask(ranked)
            if found is None or not found.answers or found.mistakes > MOST_MISTAKES:
                continue
            if found.mistakes:
                first = next(name for name, value in masked.reading.call if value == "mask")
                self.right_beside += (first,)
                self.said += (f"With {first} it is right as read. This is about {name}, given alone",)
                return found
            self.right_beside += (name,)
        return masked

    def _with_forms(self, reading: Reading) -> Iterator[Reading]:
        """The reading with a mask, in each form that words and names leave open."""
        assert self.parameter is not None
        said = str(self.given["mask"]) if "mask" in self.given else self.documented
        called = calls.with_mask_call(reading, self.definition, self.contract)
        of_its_own = self.parameter.default not in (None, "None", "False")  # a default that None may not stand for
        called = replace(called, needs_mask=called.needs_mask or of_its_own)
        forms = masks.forms(self._about_masks, self.parameter.name, said)
        if reading.order != "time":
            forms = (form for form in forms if form.shape not in TIME_FIRST_SHAPES)
        if re.search(rf"(?<![\w.]){re.escape(self.parameter.name)}\[\s*:[^],:]+,\s*:[^],:]+\]", self.code) is not None:
            forms = (form for form in forms if form.shape == "(T, T)" or form.mask == "lengths")  # mask[:T, :T]
        if self.contract.has_score:
            order = {shape: place for place, shape in enumerate(SCORE_SHAPES)}
            shaped = (form for form in forms if form.shape in order or form.mask == "lengths")
            forms = iter(sorted(shaped, key=lambda form: order.get(form.shape, -1)))
        elif reading.dims == 2 and self.contract.is_module:  # one sequence at a time: one mask for all of them
            forms = (form for form in forms if form.shape == "(T, T)")
        yield from dict.fromkeys(
            with_flags(replace(called, mask=form.mask, shape=form.shape, mask_type=form.mask_type), self.given)
            for form in forms
        )


def _explains_more(one: Ranked | None, other: Ranked | None) -> bool:
    """Whether a reading answers, and the other one does not, or needs more mistakes."""
    return one is not None and one.answers and (other is None or not other.answers or one.mistakes < other.mistakes)
