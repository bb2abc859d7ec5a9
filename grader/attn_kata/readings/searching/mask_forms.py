"""How a mask may be passed to a definition: the forms that words and names leave open, and those that its code takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from attn_kata.readings.candidates import calls, masks, roles
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import TIME_FIRST_SHAPES, Reading, with_flags
from attn_kata.readings.searching import returned
from attn_kata.readings.searching.behaviour import answers, fits, partly
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source.structure import Definition, Parameter, code_of

MOST_FORMS = 3  # of an open mask, for code that raises without one
SCORE_SHAPES = ("(B, T)", "(B, 1, T)", "(B, T, T)", "(T, B)")  # of a mask of keys, where there are no heads
_OF_MASKS = ("mask", "mask_type", "shape", "call", "needs_mask")


@dataclass(frozen=True, kw_only=True)
class MaskForms:
    """The forms of the mask that a definition takes."""

    search: Search
    definition: Definition

    @property
    def contract(self) -> Contract:
        return self.search.contract

    @property
    def parameter(self) -> Parameter | None:
        """The parameter of the call that takes a mask, as the user says, or by what it is; or None."""
        said = dict(self.search.given.get("call", ()))  # type: ignore[call-overload]
        named = next((one for one in self.definition.call if said.get(one.name) == "mask"), None)
        return named or roles.mask_parameter(self.definition, self.contract)

    @property
    def documented(self) -> masks.Said | None:
        """What words and names say of True in the mask, or None."""
        return None if self.parameter is None else masks.documented(self._about_masks, self.parameter.name)

    @property
    def _about_masks(self) -> str:
        """The text of what it uses and that has to do with the mask: "if True" in a helper's words is about something else."""
        assert self.parameter is not None
        about = re.compile(rf"mask|{re.escape(self.parameter.name)}", re.IGNORECASE)
        return "\n".join(one.text for one in self.search.structure.reach(self.definition) if about.search(one.text))

    def every(self, reading: Reading) -> Iterator[Reading]:
        """The reading with a mask, in each form that words and names leave open."""
        assert self.parameter is not None
        documented = self.documented
        hint = None if documented is None else documented.meaning
        said = None if documented is None or documented.is_hint else documented.meaning
        said = str(self.search.given["mask"]) if "mask" in self.search.given else said
        called = calls.with_mask_call(reading, self.definition, self.contract)
        of_its_own = self.parameter.default not in (None, "None", "False")  # a default that None may not stand for
        called = replace(called, needs_mask=called.needs_mask or of_its_own)
        forms = masks.forms(self._about_masks, self.parameter.name, said, hint)
        if reading.order != "time":
            forms = (form for form in forms if form.shape not in TIME_FIRST_SHAPES)
        if (
            re.search(
                rf"(?<![\w.]){re.escape(self.parameter.name)}\[\s*:[^],:]+,\s*:[^],:]+\]",
                code_of(self.search.structure.text(self.definition)),
            )
            is not None
        ):
            forms = (form for form in forms if form.shape == "(T, T)" or form.mask == "lengths")  # mask[:T, :T]
        if self.contract.has_score:
            order = {shape: place for place, shape in enumerate(SCORE_SHAPES)}
            shaped = (form for form in forms if form.shape in order or form.mask == "lengths")
            forms = iter(sorted(shaped, key=lambda form: order.get(form.shape, -1)))
        elif reading.dims == 2 and self.contract.is_module:  # one sequence at a time: one mask for all of them
            forms = (form for form in forms if form.shape == "(T, T)")
        yield from dict.fromkeys(
            with_flags(replace(called, mask=form.mask, shape=form.shape, mask_type=form.mask_type), self.search.given)
            for form in forms
        )

    def needing(self, readings: list[Reading]) -> Iterator[Reading]:
        """The readings with an open mask in every call, in the first forms to which the code gives any answer.

        Each layout is looked at when its turn comes: the likeliest is most often enough.
        """
        ways = [
            (one.order, one.query, one.call) if self.contract.has_score else (one.order, one.dims) for one in readings
        ]
        for way in dict.fromkeys(ways):  # where the layout of the inputs is open, the mask's form is looked for in each
            of_way = [one for one, other in zip(readings, ways, strict=True) if other == way]
            for fields in self.open_forms(of_way[0]):
                yield from (replace(one, **fields) for one in of_way)

    def of_a_block(self, reading: Reading) -> list[dict[str, Any]]:
        """How a mask may be passed to a block: for each meaning of it the first form that the code takes, or all of them."""
        every = list(self.every(reading))
        taken: dict[str, Reading] = {}
        for one in every:
            if one.mask in taken:
                continue
            asked = self.search.unmasked(one)
            if fits(asked) or (not answers(asked) and self.takes(one)):
                taken[one.mask] = one
        return [{name: getattr(one, name) for name in _OF_MASKS} for one in taken.values() or every[:MOST_FORMS]]

    def open_forms(self, reading: Reading) -> list[dict[str, Any]]:
        """How an open mask may be passed to code that needs one: the first forms that it takes, of each meaning at least one.

        What hides nothing in one meaning hides everything in another.
        """
        every = list(self.every(replace(reading, needs_mask=True)))
        meanings = {one.mask for one in every}
        taken: list[Reading] = []
        # It raises for some inputs, as with a mask (B, H, T, T) that is cut as one (T, T); or the mask has added a dimension.
        narrow: list[Reading] = []
        for one in every:
            alike = sum(other.mask == one.mask for other in taken)
            if alike < MOST_FORMS and self.takes(one):
                asked = max(
                    map(self.search.unmasked, returned.with_places(self.search, self.definition, [one])), key=fits
                )
                (narrow if partly(asked) or (answers(asked) and not fits(asked)) else taken).append(one)
            if len(taken) >= MOST_FORMS and {each.mask for each in taken} == meanings:
                break
        taken += narrow
        first = {one.mask: one for one in reversed(taken)}
        likeliest = [*first.values(), *(one for one in taken if one is not first[one.mask])][:MOST_FORMS]
        return [{name: getattr(one, name) for name in _OF_MASKS} for one in taken if one in likeliest]

    def takes(self, reading: Reading) -> bool:
        """Whether the code gives any answer; if only a tuple, whose parts are looked for later."""
        unmasked = self.search.unmasked
        return answers(unmasked(reading)) or any("returned a" in text for text in self.search.raised(reading, unmasked))
