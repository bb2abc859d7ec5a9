"""Grades code that was not written for the kata: finds its reading, and what the hidden tests and the diagnosis need then."""

from __future__ import annotations

import itertools
import time
import types
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attn_kata import catalog
from attn_kata.diagnosis.diagnose import Diagnosed
from attn_kata.diagnosis.flow.shown import Shown
from attn_kata.diagnosis.pipeline import Pipeline, load
from attn_kata.grading import anyway, foreign_tests, unread
from attn_kata.grading.anyway import Anyway
from attn_kata.grading.connection import Connection
from attn_kata.grading.hidden_tests import HiddenTest
from attn_kata.grading.local import Local
from attn_kata.properties.failures import AttemptDied
from attn_kata.properties.handle import Handle
from attn_kata.readings import contract, description, fitting, origin, reader, their_names
from attn_kata.readings import left_out as left_out_of
from attn_kata.readings.asking.limited import Limited
from attn_kata.readings.choice import Chosen, NotRead
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import parse
from attn_kata.readings.searching import observed
from attn_kata.readings.searching.search import Search
from attn_kata.readings.source import held_weights, methods, structure, syntax
from attn_kata.readings.source.structure import Definition, Structure

_NO_IMPORTS = "The file imports nothing. These names are read as what they usually stand for: {names}"
_SET_NOWHERE = (
    "Nothing in the file sets {names}. The grader assumes that another cell or file does. If none does, this is "
    "python.undefined_name"
)
_HELD = "{function} is given its weights. It is read as the forward of a module that holds them, {module}"
_METHOD_ALONE = "Only {method} is graded, as if it were the forward of {whole}. What calls it is not graded"
_NO_SUCH_MASK = "What you said of its mask has no effect: the code takes no mask"
# What a script sets for all that it calls. Without it: the processor, and no GPU.
_SET_BY_SCRIPTS = ("device", "DEVICE", "use_cuda", "USE_CUDA", "use_gpu", "USE_GPU")
MOST_OBSERVED = 4  # definitions whose calls are followed, where there is no reading
MOST_SECONDS = 3.0  # for all of them, which may be slow
_SURE = "You are sure of this reading (sure=yes), so what no known mistake explains counts as wrong"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A source that is to be read, with its structure and the contract of the kata.

    Of a method that is graded alone, `text` has nothing else of its class, and `method` is its name, as `Decoder.attend`.
    """

    text: bytes
    structure: Structure
    contract: Contract
    folder: Path
    solution: Path
    flags: tuple[str, ...] = ()
    method: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What it defines."""
        return tuple(one.name for one in self.structure.definitions)[:50]

    @property
    def asked(self) -> str:
        """The name of the definition that flags ask for, or ""."""
        return self.structure.meant(str(parse(self.flags).get("entry", "")))

    def definition(self, entry: str = "") -> Definition | None:
        """The definition of that name or of the one that is asked for, or else what looks most like an attention."""
        likely = next(iter(structure.attention_like(self.structure)), None)
        return self.structure.find(entry) or self.structure.find(self.asked) or likely

    def in_its_names(self, text: str) -> str:
        """What is said of a method that is graded alone, by its name: it runs as `forward`."""
        return text.replace(" in forward", f" in {self.method.rpartition('.')[2]}") if self.method else text

    def wrong_anyway(self, entry: str = "", *, ungraded: bool = False) -> Anyway:
        """What the lines of a definition show to be wrong however it is read."""
        return anyway.in_lines(self.text, self.structure, self.definition(entry), ungraded=ungraded)


@dataclass(frozen=True, kw_only=True)
class Read:
    """A source under its reading: what is asked, of whom, and what is left out."""

    source: Source
    chosen: Chosen
    attempt: Handle
    reference: Handle
    tests: list[HiddenTest]
    mistakes: types.ModuleType
    left_out: dict[str, str]
    notes: tuple[str, ...] = ()
    raises: str = ""  # what it raises, where all that fails is an exception

    @property
    def described(self) -> dict[str, Any]:
        """The report's `reading`."""
        by_contract = unread.by_contract(
            self.source.text, self.source.structure, self.source.contract, self.chosen.reading
        )
        found = description.described(self.chosen, self.source.contract, by_contract=by_contract)
        if self.source.method:
            found["entry"] = self.source.method
            found["flags"] = [
                f"entry={self.source.method}" if one.startswith("entry=") else one for one in found["flags"]
            ]
        return {**found, "notes": [*found["notes"], *self._said_of_the_source(), *self.notes]}

    def _said_of_the_source(self) -> list[str]:
        """What stands for names that the source does not set, and what is written around a function or a method."""
        source, reading = self.source, self.chosen.reading
        structure, definition = source.structure, source.structure.find(reading.entry)
        said = [_NO_IMPORTS.format(names=", ".join(structure.assumed))] if structure.assumed else []
        reads = {name for one in structure.reach(definition) for name in one.reads} if definition is not None else set()
        given = [*(name for name, _ in reading.globals), *(name for name in _SET_BY_SCRIPTS if name in reads)]
        nowhere = [name for name in given if name in structure.unset]
        said += [_SET_NOWHERE.format(names=", ".join(nowhere))] if nowhere else []
        said += [_SURE] * reading.sure
        function = reading.entry.removesuffix(held_weights.SUFFIX)
        if definition is not None and function != reading.entry and structure.find(function) is not None:
            said.append(_HELD.format(function=function, module=reading.entry))
        said += unread.stand_ins(structure, reading.entry)
        return said + [_METHOD_ALONE.format(method=source.method, whole=reading.entry)] * bool(source.method)

    @property
    def code(self) -> bytes:
        """The source as the diagnosis looks for lines in it."""
        source = self.source
        return their_names.by_contract_names(source.text, self.chosen.reading, source.contract, source.structure)

    @property
    def text(self) -> str:
        """What is read, with all that it uses."""
        source = self.source.structure
        definition = source.find(self.chosen.reading.entry)
        return "" if definition is None else source.text(definition)

    def without_meaning_of_lost_mask(self, diagnosed: Diagnosed) -> Read:
        """The same; where each diagnosis is that the mask has no effect, no note asks what True in it means."""
        named = [{mistake.id for mistake in one.mistakes} for one in diagnosed.diagnoses]
        if not named or not all("mask.lost" in ids for ids in named):
            return self
        mask = self.chosen.reading.mask
        ties = tuple(one for one in self.chosen.ties if replace(one, mask=mask) != self.chosen.reading)
        notes = tuple(one for one in self.chosen.notes if "mask.broadcast" not in one)  # of shapes that it never meets
        return replace(self, chosen=replace(self.chosen, settled=True, ties=ties, notes=notes))

    def in_their_names(self, diagnosed: Diagnosed) -> Diagnosed:
        """The diagnosis with the lines of the source and the names that the code has."""
        lines = self.source.text.decode("utf-8", "replace").splitlines()

        def say(text: str) -> str:
            return their_names.in_their_names(text, self.chosen.reading, self.source.contract)

        def line(number: int | None) -> str | None:
            return lines[number - 1].strip() if number and number <= len(lines) else None

        diagnoses = [
            replace(
                one,
                mistakes=[
                    replace(
                        mistake,
                        title=say(mistake.title),
                        explanation=say(mistake.explanation),
                        question=say(mistake.question),
                        source_line=line(mistake.line),
                    )
                    for mistake in one.mistakes
                ],
            )
            for one in diagnosed.diagnoses
        ]
        return replace(diagnosed, diagnoses=diagnoses)


def to_be_read(source: bytes, folder: Path, solution: Path, *, flags: tuple[str, ...]) -> Source | None:
    """The source, where the kata can be graded by a reading and the source does not have the contract's own names.

    `flags`, KEY=VALUE, say how it is to be read.
    """
    kata_contract = contract.of_kata(folder)
    if kata_contract is None:
        return None
    asked = str(parse(flags).get("entry", ""))
    source, entry = methods.taken(held_weights.with_modules(source), asked)
    found = syntax.of_source(source)
    if not flags and origin.is_by_contract(source, found, catalog.load(folder).entries, kata_contract):
        return None
    return Source(
        text=source,
        structure=found,
        contract=kata_contract,
        folder=folder,
        solution=solution,
        flags=tuple(f"entry={entry}" if flag == f"entry={asked}" else flag for flag in flags),
        method=asked if entry != asked else "",
    )


def _search(source: Source, connection: Connection, plain: Local, mistakes: types.ModuleType) -> Search:
    pipelines: tuple[Pipeline, ...] = mistakes.PIPELINES
    also = source.contract.with_mask
    if also is not None:
        other = load(source.folder.parent / also.kata)
        pipelines += tuple(one for one in other.PIPELINES if one.entry == also.entry)
    given = fitting.as_named(parse(source.flags), source.contract)
    if "entry" in given:
        given["entry"] = source.structure.meant(str(given["entry"]))
    return Search(
        structure=source.structure,
        contract=source.contract,
        pipelines=pipelines,
        attempt=connection,
        reference=plain,
        given=given,
        returns=catalog.load(source.folder).returns,
    )


def wrong_anyway(source: Source, connection: Connection, entry: str, mistakes: types.ModuleType | None) -> Anyway:
    """What is wrong however the code is read: as its lines show it, and as every call shows it that runs."""
    seen = source.wrong_anyway(entry, ungraded=True)
    first = source.definition(entry)
    reached = [] if first is None else source.structure.reach(first)
    others = () if source.asked else structure.attention_like(source.structure)
    every = {one.name: one for one in (*reached, *others) if one.call}
    plain = Local(foreign_tests.reference(source.solution, source.contract))
    search = _search(replace(source, flags=()), connection, plain, mistakes or load(source.folder))
    until = time.monotonic() + MOST_SECONDS
    shown: list[tuple[Definition, Shown]] = []
    for definition in itertools.islice(every.values(), MOST_OBSERVED):
        # Vectors that are given as they are may have another size than that which the class is built with.
        own_size = not source.method and (not definition.is_class or _projects(definition, source.structure))
        try:
            found = observed.shown(search, definition, until)
            shown += [(definition, one) for one in found if own_size or one.id != "scale.embed_dim"]
        except AttemptDied:
            break
    return anyway.with_calls(seen, shown, [one.name for one in reached])


def _projects(definition: Definition, found: Structure) -> bool:
    """Whether a class has layers or modules of its own that may make the vectors of its scores."""
    makers = ("Linear", "Parameter", "ModuleList", "ModuleDict", "Sequential", "Conv1d", "Conv1D", "Conv2d")
    return any(made.endswith(makers) or found.find(made) is not None for made in definition.layers.values())


def read(
    source: Source,
    connection: Connection,
    *,
    tests: list[HiddenTest] | None = None,
    mistakes: types.ModuleType | None = None,
) -> Read | str:
    """The source under its reading, or why it has none. Raises AttemptDied."""
    mistakes = mistakes or load(source.folder)
    tests = tests if tests is not None else foreign_tests.of_kata(source.folder)
    plain = Local(foreign_tests.reference(source.solution, source.contract))
    search = _search(source, connection, plain, mistakes)
    pipelines, returns, given, also = search.pipelines, search.returns, search.given, source.contract.with_mask
    chosen = reader.read(search)
    if isinstance(chosen, NotRead):
        return unread.why(source.structure, source.contract, source.names, chosen)
    connection.adapt(chosen.adapter)
    limits = chosen.limits
    masked = limits.of_masked_function()
    takes_mask = also is not None and chosen.reading.mask != "none"
    if also is not None and takes_mask:
        masked_tests = foreign_tests.of_kata(source.folder.parent / also.kata)
        tests = [*tests, *foreign_tests.with_mask(masked_tests, also.properties, tests)]
    left_out = left_out_of.of_reading(chosen.reading, source.contract, limits)
    one_feature = all(one.one_feature for one in limits.conventions)
    as_wide = limits.has_one_width or (source.contract.has_score and bool(limits.as_they_are))
    tests = foreign_tests.possible(tests, chosen.reading, one_feature=one_feature, as_wide=as_wide)
    hides = chosen.reading.causal and limits.place is None
    reference = plain
    if hides or limits.conventions or chosen.reading.keys_are_values:
        own = foreign_tests.reference(source.solution, source.contract, limits, hides=hides)
        of_keys = chosen.reading.keys_are_values
        reference = Local(foreign_tests.keys_as_values(own, source.contract.entry) if of_keys else own)
    limited = tuple(
        (limits if one.entry == source.contract.entry else masked).pipeline(one)
        for one in pipelines
        if source.contract.rotation
        or (one.entry == source.contract.entry and chosen.reading.entry != chosen.reading.builder)
        or (takes_mask and also is not None and one.entry == also.entry)
        or (chosen.reading.builder and one.entry == source.contract.builder)
    )
    asked = types.ModuleType("reading")
    asked.__dict__.update(vars(mistakes))
    asked.__dict__["PIPELINES"] = limited
    # The order of its arguments and what it refuses are its own.
    symptoms = getattr(mistakes, "SYMPTOMS", ())  # a kata may have none
    asked.__dict__["SYMPTOMS"] = tuple(one for one in symptoms if not one.id.startswith("arguments."))
    return Read(
        source=source,
        chosen=chosen,
        attempt=Handle(Limited(connection, limits, attempt=True), returns),
        reference=Handle(Limited(reference, limits, attempt=False), returns),
        tests=tests,
        mistakes=asked,
        left_out=left_out,
        notes=(_NO_SUCH_MASK,) * (given.get("mask", "none") != "none" and chosen.reading.mask == "none"),
    )
