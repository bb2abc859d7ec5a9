"""Grades code that was not written for the kata: finds its reading, and what the hidden tests and the diagnosis need then."""

from __future__ import annotations

import difflib
import importlib.util
import types
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attn_kata import catalog
from attn_kata.diagnosis.diagnose import Diagnosed
from attn_kata.diagnosis.pipeline import Pipeline, load
from attn_kata.grading import hidden_tests
from attn_kata.grading.connection import Connection
from attn_kata.grading.hidden_tests import HiddenTest
from attn_kata.grading.local import Local
from attn_kata.properties.cases import Drawn, Sizes
from attn_kata.properties.failures import PropertyFailed
from attn_kata.properties.handle import Handle
from attn_kata.readings import causal, contract, conventions, description, origin, structure, syntax
from attn_kata.readings.contract import Contract
from attn_kata.readings.limits import Limited, Limits
from attn_kata.readings.reading import Reading, parse
from attn_kata.readings.search import Chosen, NotRead, Search
from attn_kata.report.model import Finding

SAY = "Name the class with --class NAME, or say how to read it with --read KEY=VALUE"
_RESULT_DROPPED = "one is dropped and not the other, for each query others"
_DROPS_RESULT = "left out under this reading: the code drops numbers of the result (dropout.twice, by the contract)"
_DROPPED_WEIGHTS = (
    "left out under this reading: the code returns the weights after dropout (weights.after_dropout, by the contract)"
)
NOT_READ = "it could not be read as {kata}: {tried}. {say}"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A source that is to be read, with its structure and the contract of the kata."""

    text: bytes
    structure: structure.Structure
    contract: Contract
    folder: Path
    solution: Path

    @property
    def names(self) -> tuple[str, ...]:
        """What it defines."""
        return tuple(one.name for one in self.structure.definitions)[:50]


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

    @property
    def described(self) -> dict[str, Any]:
        """The report's `reading`."""
        return description.described(
            self.chosen, self.source.contract, by_contract=_by_contract(self.source, self.chosen.reading)
        )

    @property
    def code(self) -> bytes:
        """The source as the diagnosis looks for lines in it."""
        source = self.source
        return description.by_contract_names(source.text, self.chosen.reading, source.contract, source.structure)

    def settled(self, findings: list[Finding], failures: dict[str, PropertyFailed]) -> Read:
        """The same, without the properties of dropout where the code drops numbers of the result, as its author wants it."""
        if "weights_before_dropout" in failures and "dropout_acts_on_weights" not in failures:
            return replace(self, left_out=self.left_out | {"weights_before_dropout": _DROPPED_WEIGHTS})
        failure = failures.get("dropout_acts_on_weights")
        if failure is None or _RESULT_DROPPED not in failure.message:
            return self
        return replace(
            self, left_out=self.left_out | dict.fromkeys(self.source.contract.left_out["dropout"], _DROPS_RESULT)
        )

    def in_their_names(self, diagnosed: Diagnosed) -> Diagnosed:
        """The diagnosis with the lines of the source and the names that the code has."""
        lines = self.source.text.decode("utf-8", "replace").splitlines()

        def say(text: str) -> str:
            return description.in_their_names(text, self.chosen.reading, self.source.contract)

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


def to_be_read(source: bytes, folder: Path, solution: Path, *, forced: bool) -> Source | None:
    """The source, where the kata can be graded by a reading and the source does not have the contract's own names."""
    kata_contract = contract.of_kata(folder)
    if kata_contract is None:
        return None
    found = syntax.of_source(source)
    if not forced and origin.is_by_contract(source, found, catalog.load(folder).entries, kata_contract):
        return None
    return Source(text=source, structure=found, contract=kata_contract, folder=folder, solution=solution)


def read(
    source: Source,
    connection: Connection,
    *,
    flags: tuple[str, ...],
    tests: list[HiddenTest] | None = None,
    mistakes: types.ModuleType | None = None,
) -> Read | str:
    """The source under its reading, or why it has none. Raises AttemptDied."""
    mistakes = mistakes or load(source.folder)
    tests = tests if tests is not None else _tests(source.folder)
    pipelines: tuple[Pipeline, ...] = mistakes.PIPELINES
    also = source.contract.with_mask
    if also is not None:
        other = load(source.folder.parent / also.kata)
        pipelines += tuple(one for one in other.PIPELINES if one.entry == also.entry)
    plain = Local(_reference(source))
    returns = catalog.load(source.folder).returns
    search = Search(
        structure=source.structure,
        contract=source.contract,
        pipelines=pipelines,
        attempt=connection,
        reference=plain,
        given=parse(flags),
        returns=returns,
    )
    chosen = search.run()
    if isinstance(chosen, NotRead):
        return _not_read(source, chosen)
    connection.adapt(chosen.adapter)
    limits, masked = chosen.limits, chosen.limits.of_masked_function()
    takes_mask = also is not None and chosen.reading.mask != "none"
    if also is not None and takes_mask:
        names = set(also.properties)
        tests = [*tests, *(one for one in _tests(source.folder.parent / also.kata) if one.property.name in names)]
    left_out = description.left_out(chosen.reading, source.contract, limits)
    if chosen.reading.square:
        tests, without = _square(tests)
        left_out |= dict.fromkeys(without, "left out under this reading: the code takes as many queries as keys only")
    hides = chosen.reading.causal and limits.place is None
    reference = Local(_reference(source, limits, hides=hides)) if hides or limits.conventions else plain
    limited = tuple(
        (limits if one.entry == source.contract.entry else masked).pipeline(one)
        for one in pipelines
        if one.entry == source.contract.entry or (takes_mask and also is not None and one.entry == also.entry)
    )
    asked = types.ModuleType("reading")
    asked.__dict__.update(vars(mistakes))
    asked.__dict__["PIPELINES"] = limited
    # The order of its arguments and what it refuses are its own.
    asked.__dict__["SYMPTOMS"] = tuple(one for one in mistakes.SYMPTOMS if not one.id.startswith("arguments."))
    return Read(
        source=source,
        chosen=chosen,
        attempt=Handle(Limited(connection, limits, attempt=True), returns),
        reference=Handle(Limited(reference, limits, attempt=False), returns),
        tests=tests,
        mistakes=asked,
        left_out=left_out,
    )


def _tests(folder: Path) -> list[HiddenTest]:
    return hidden_tests.load(folder / f"test_{folder.name}.py")


def _square(tests: list[HiddenTest]) -> tuple[list[HiddenTest], list[str]]:
    """The tests with their cases that have as many queries as keys, and the properties that have no such case."""
    kept, without = [], []
    for test in tests:
        cases = [case for case in test.property.cases if case is None or _is_square(case)]
        without += [] if cases else [test.property.name]
        kept.append(replace(test, property=replace(test.property, cases=tuple(cases) or test.property.cases)))
    return kept, without


def _is_square(case: Sizes | Drawn) -> bool:
    return not isinstance(case, Drawn) and case.as_dict().get("Tq") == case.as_dict().get("Tk")


def _reference(source: Source, limits: Limits | None = None, *, hides: bool = False) -> types.ModuleType:
    """The reference, with the conventions of `limits`, hiding later keys with `hides`; and the function that takes a mask."""
    also = source.contract.with_mask
    namespace = types.ModuleType(source.solution.stem)
    paths = [source.solution] + ([source.solution.with_name(f"{also.kata}.py")] if also is not None else [])
    for path in reversed(paths):
        text = path.read_text("utf-8")
        if hides and path == source.solution:
            text = causal.reference(text)
        if limits is not None and path == source.solution:
            text = conventions.reference(text, limits.conventions)
        exec(compile(text, str(path), "exec", dont_inherit=True), namespace.__dict__)
    namespace.__file__ = str(source.solution)
    return namespace


def _not_read(source: Source, none: NotRead) -> str:
    missing = sorted({package for package in source.structure.imports.values() if _is_missing(package)})
    tried = "; ".join(none.tried) or "nothing fits"
    say = SAY
    if missing:
        say = f"These imports are not installed here: {', '.join(missing)}. {say}"
    said = NOT_READ.format(kata=source.contract.kata, tried=tried, say=say)
    return (
        f"{say_missing([source.contract.entry], source.names)}. As code by other names, {said}"
        if none.nothing
        else said
    )


def say_missing(missing: list[str], names: tuple[str, ...]) -> str:
    """That a source lacks names of the contract, what it has, and which of these may be meant."""
    wanted = " and ".join(f'"{name}"' for name in missing)
    found = f"it defines {', '.join(names)}" if names else "it defines no function or class"
    near = [match for name in missing for match in difflib.get_close_matches(name, names, 1, 0.6)]
    hint = f"; is {', '.join(near)} meant to be it?" if near else ""
    return f"it has no {wanted}; {found}{hint}"


def _is_missing(package: str) -> bool:
    if package.startswith("."):
        return True
    try:
        return importlib.util.find_spec(package) is None
    except (ImportError, ValueError):
        return True


def _by_contract(source: Source, reading: Reading) -> str | None:
    """What the contract alone says of a source that nearly has its names: those of the entry, or of half of the layers."""
    entry, strict = source.contract.entry, "To grade it by the contract: --strict"
    if source.structure.find(entry) is None:
        if not difflib.get_close_matches(entry, [reading.entry], 1, 0.9):
            return None
        return f"By the contract alone, {say_missing([entry], (reading.entry,))} {strict}"
    missing = origin.missing_layers(source.text, source.contract)
    if not missing or 2 * len(missing) > len(source.contract.layers):
        return None
    names = ", ".join(one.name for one in source.contract.layers.values())
    return f"By the contract alone it fails: it has no {', '.join(missing)}; the contract names {names}. {strict}"
