"""Grades code that was not written for the kata: finds its reading, and what the hidden tests and the diagnosis need then."""

from __future__ import annotations

import re
import types
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attn_kata import catalog
from attn_kata.diagnosis import own_exceptions
from attn_kata.diagnosis.departure import CONTEXT
from attn_kata.diagnosis.diagnose import Diagnosed
from attn_kata.diagnosis.lines import forgets_what_it_drops
from attn_kata.diagnosis.pipeline import Pipeline, load
from attn_kata.diagnosis.symptoms import IN_PLACE, is_of_none
from attn_kata.grading import hidden_tests, unread
from attn_kata.grading.connection import Connection
from attn_kata.grading.hidden_tests import HiddenTest
from attn_kata.grading.local import Local
from attn_kata.properties.cases import Drawn, Sizes
from attn_kata.properties.failures import AttemptRaised, NoAnswer, PropertyFailed, RaisedWithoutMask, ReadyMade
from attn_kata.properties.handle import Handle
from attn_kata.readings import (
    advice,
    building,
    causal,
    certain,
    contract,
    conventions,
    description,
    doubts,
    origin,
    reader,
    structure,
    syntax,
    vocabulary,
)
from attn_kata.readings.choice import Chosen, NotRead
from attn_kata.readings.contract import Contract
from attn_kata.readings.limited import Limited
from attn_kata.readings.limits import Limits
from attn_kata.readings.reading import ROLES, Reading, parse
from attn_kata.readings.search import Search
from attn_kata.report.model import Finding

_SURE_IN_PART = ("scale.", "softmax.")
_AS_CONDITION = "mask.as_condition"
_EVAL = "no_dropout_in_eval"
_DROPOUT_LEFT_OUT = "left out under this reading: the code's own dropout is not graded"
_DEVICE_LEFT_OUT = "left out under this reading: where the code makes its tensors is said, and not graded"
_STRIDES, _OF_A_VIEW = "non_contiguous_inputs", "view size is not compatible"
_STRIDES_LEFT_OUT = "left out under this reading: that it needs inputs in one piece is said, and not graded"
_MASKED_GRADIENTS, _NAN_GRADIENT = "gradients_with_mask", re.compile(r"grad\[.*\] is nan\b")
_EMPTY_ROWS_LEFT_OUT = "left out under this reading: that hidden queries have no key left is said, and not graded"
_EMPTY_ROWS = (
    "With padding, its gradients are NaN: its mask leaves padded queries without a key. The contract does not test this"
)
_RESULT_DROPPED = "one is dropped and not the other, for each query others"
_SCORES_DROPPED = re.compile(r"none is 0, but several of one|sum to 1 in train\(\), and none is 0")
_NOT_REACHED = "no weights reach it"  # of the output, which says nothing of the dropout
_NO_IMPORTS = "The file imports nothing. These names are read as what they usually stand for: {names}"
_SURE = "You are sure of this reading (sure=yes), so what no known mistake explains counts as wrong"
_DROPPED_WEIGHTS = (
    "left out under this reading: the code returns the weights after dropout (weights.after_dropout, by the contract)"
)


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

    def wrong_anyway(self, entry: str = "") -> list[str]:
        """Notes about what is wrong however the code is read: in `entry`, or in what looks most like an attention."""
        likely = structure.attention_like(self.structure)
        definition = self.structure.find(entry) or next(iter(likely), None)
        return unread.wrong_anyway(self.text, self.structure, definition)


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
        assumed = self.source.structure.assumed
        without = [_NO_IMPORTS.format(names=", ".join(assumed))] if assumed else []
        without += [_SURE] * self.chosen.reading.sure
        without += unread.stand_ins(self.source.structure, self.chosen.reading.entry)
        return {**found, "notes": [*found["notes"], *without, *self.notes]}

    def no_verdict(
        self, findings: list[Finding], failures: dict[str, PropertyFailed], diagnosed: Diagnosed
    ) -> str | None:
        """Why a failure that the diagnosis does not explain is no verdict: the code may have been read wrong. Or None.

        Of public code that failed so and that was judged by hand, as much was right as wrong.
        """
        doubt = self.chosen.doubt or self.raises
        if self.chosen.reading.sure:
            return None
        if any(isinstance(one, ReadyMade) for one in failures.values()):
            return None
        seen = diagnosed.departures
        mixes = any(one.mixes for one in seen) and all(one.mixes or one.factor == 1 for one in seen)
        if mixes and (not doubt or doubt.startswith(doubts.RAISES)):
            return None  # its weights are right, so it is read right, and what it does with them is not
        if not doubt and diagnosed.diagnoses and _is_right_up_to_k(findings, failures, diagnosed):
            return None  # beside something unknown, which without a known mistake could be another kind of attention
        if not doubt:
            return self._fails_unexplained(findings, failures, "".join(f" {one}." for one in seen[:1]))
        how = ", ".join(f"{name}={value}" for name, value in self.chosen.reading.build)
        tried = f"{self.chosen.reading.entry}({how}): {doubt}"
        say = advice.on(tried) + ("" if doubt.startswith(doubts.RAISES) else unread.IF_SURE)
        return unread.NOT_READ.format(kata=self.source.contract.kata, tried=tried, say=say)

    def _fails_unexplained(
        self, findings: list[Finding], failures: dict[str, PropertyFailed], so_far: str
    ) -> str | None:
        """What fails first, where it is numbers or exceptions; None for what says by itself what is wrong.

        `so_far` says how far it is right.
        """
        core = [one for one in findings if one.tier == "core" and one.property in failures]
        told = [failures[one.property] for one in core]
        raised = [one for one in told if isinstance(one, AttemptRaised)]
        if not core or any(isinstance(one, NoAnswer) for one in told) or self._fails_by_itself(raised):
            return None
        return unread.UNEXPLAINED.format(property=core[0].property, message=core[0].message, so_far=so_far)

    def explains(self, diagnosed: Diagnosed) -> bool:
        """Whether the diagnosis names what the code does.

        Not what only a guess at how it is called looks like, nor numbers in which unknown parameters have a part.
        """
        ids = [mistake.id for one in diagnosed.diagnoses for mistake in one.mistakes]
        of_a_guess = self.chosen.layout_open and all(id.startswith(("output.", "layout.")) for id in ids)
        # That it wants float32 says nothing of numbers that nothing explains in float32 either.
        of_a_guess |= bool(self.chosen.doubt) and set(ids) <= {"numerics.default_dtype", "numerics.forced_float32"}
        # An exception may come of how it was read; whether it is the code's own is looked at apart.
        of_exceptions = {*own_exceptions.IDS} | ({_AS_CONDITION} if self.chosen.reading.mask == "none" else set())
        of_a_guess |= set(ids) <= of_exceptions and not diagnosed.reproduced
        # Where something else is unknown, which mask and which of its layers is meant may be read wrong as well.
        of_a_guess |= set(ids) <= diagnosed.in_part and not any(
            id.startswith(_sure_in_part(diagnosed, self.chosen.reading)) for id in ids
        )
        # What takes one input for keys and values, and has a layer for queries too, may mean the projected keys for its values.
        reading = self.chosen.reading
        projects_both = bool(reading.layer("q").weight) and bool(reading.layer("k").weight)
        of_a_guess |= reading.keys_are_values and projects_both and set(ids) == {"mix.keys"}
        of_norms = set(ids) == {"scale.missing"} and bool(doubts.of_norms(self.chosen.reading))
        return bool(ids) and not of_a_guess and not of_norms and not self.chosen.further

    @property
    def code(self) -> bytes:
        """The source as the diagnosis looks for lines in it."""
        source = self.source
        return description.by_contract_names(source.text, self.chosen.reading, source.contract, source.structure)

    def settled(self, findings: list[Finding], failures: dict[str, PropertyFailed]) -> Read:
        """The same, without the properties of dropout where the code drops something else, or nothing, without the device, and
        without inputs that are not in one piece.

        Dropout in train() is a convention of its author; that nothing is dropped in eval() is none, nor that it is weights
        that are dropped, and not the scores before the softmax.
        """
        read = self._without_device(failures)._without_strides(findings, failures)
        read = read._without_empty_rows(failures)._refusing(findings, failures)
        if "weights_before_dropout" in failures and "dropout_acts_on_weights" not in failures:
            return replace(read, left_out=read.left_out | {"weights_before_dropout": _DROPPED_WEIGHTS})
        about = [name for name in self.source.contract.left_out.get("dropout", ()) if name != _EVAL]
        if not about and forgets_what_it_drops(self._text.encode()):
            note = "It drops something and does not use the result (dropout.never). The kata has none, so this is not graded"
            read = replace(read, notes=(*read.notes, note))
        failed = next((name for name in about if name in failures), None)
        if failed is not None and failures[failed].message.endswith(_NOT_REACHED):
            return read
        if failed is None or _EVAL in failures or IN_PLACE.search(failures[failed].message):
            return read
        acts = failures.get("dropout_acts_on_weights")
        if acts is not None and _SCORES_DROPPED.search(acts.message):
            return read
        message = failures[failed].message
        id = "dropout.never" if message.startswith("nothing is dropped") else ""
        id = "dropout.on_output" if _RESULT_DROPPED in message else id
        if id == "dropout.never" and forgets_what_it_drops(self._text.encode()):
            return read  # it is meant to drop
        note = f"Its dropout is not the contract's{f' ({id})' if id else ''}, and is not graded: in train(), {message}"
        left_out = read.left_out | dict.fromkeys(about, _DROPOUT_LEFT_OUT)
        return replace(read, left_out=left_out, notes=(*read.notes, note))

    def _without_device(self, failures: dict[str, PropertyFailed]) -> Read:
        """Where all that it does on the processor is right, a tensor on the wrong device is said and decides nothing."""
        failure = failures.get("device")
        if failure is None or isinstance(failure, NoAnswer):
            return self
        note = f"By the contract this is device.default, and it is not graded: {failure.message}"
        return replace(self, left_out=self.left_out | {"device": _DEVICE_LEFT_OUT}, notes=(*self.notes, note))

    def _without_strides(self, findings: list[Finding], failures: dict[str, PropertyFailed]) -> Read:
        """Where a view of an input is all that raises, it is said and decides nothing: its callers give whole tensors."""
        failure = failures.get(_STRIDES)
        core = {one.property for one in findings if one.tier == "core" and one.property in failures}
        if failure is None or core - self.left_out.keys() != {_STRIDES} or _OF_A_VIEW not in failure.message:
            return self
        note = f"By the contract this is layout.view_of_strided, and it is not graded: {failure.message}"
        return replace(self, left_out=self.left_out | {_STRIDES: _STRIDES_LEFT_OUT}, notes=(*self.notes, note))

    def _without_empty_rows(self, failures: dict[str, PropertyFailed]) -> Read:
        """Where a mask hides queries too, NaN gradients are of rows without a key: they are said and decide nothing."""
        failure = failures.get(_MASKED_GRADIENTS)
        if failure is None or not self.chosen.reading.hides_queries or not _NAN_GRADIENT.search(failure.message):
            return self
        left_out = self.left_out | {_MASKED_GRADIENTS: _EMPTY_ROWS_LEFT_OUT}
        return replace(self, left_out=left_out, notes=(*self.notes, _EMPTY_ROWS))

    def _refusing(self, findings: list[Finding], failures: dict[str, PropertyFailed]) -> Read:
        """Where all that fails raises, the code may have conditions of its own, or the reading may be wrong.

        But not what the code would raise however it is read.
        """
        core = [failures[one.property] for one in findings if one.tier == "core" and one.property in failures]
        raised = [one for one in core if isinstance(one, AttemptRaised)]
        if not core or self.chosen.doubt or len(raised) < len(core) or self._fails_by_itself(raised):
            return self
        return replace(
            self, raises=f"it raises for some of what it is asked: {core[0].message.removeprefix('raised ')}"
        )

    @property
    def _text(self) -> str:
        """What is read, with all that it uses."""
        source = self.source.structure
        definition = source.find(self.chosen.reading.entry)
        return "" if definition is None else source.text(definition)

    def _fails_by_itself(self, raised: list[AttemptRaised]) -> bool:
        """Whether one of these exceptions is certainly a mistake of the code's."""
        source = self.source.structure
        definition = source.find(self.chosen.reading.entry)
        if definition is None:
            return False
        text = self._text
        return certain.returns_nothing(definition) or any(
            certain.is_own_mistake(one.raised, text, source) for one in raised
        )

    def with_more(
        self, findings: list[Finding], failures: dict[str, PropertyFailed]
    ) -> tuple[list[Finding], dict[str, PropertyFailed]]:
        """The findings, and what the properties do not ask under the reading."""
        return self._with_no_mask(*self._with_shared(findings, failures))

    def _with_no_mask(
        self, findings: list[Finding], failures: dict[str, PropertyFailed]
    ) -> tuple[list[Finding], dict[str, PropertyFailed]]:
        """The findings; where the code raises without a mask, because it uses None as a tensor, one that asks so fails."""
        raised = self.chosen.without_mask
        held = {one.property for one in findings if one.outcome == "passed"}
        name = next((one for one in ("values", "output_shape") if one in held), "")
        if raised is None or not is_of_none(raised.text) or not name:
            return findings, failures
        failure = RaisedWithoutMask(raised)
        changed = [
            replace(one, outcome="failed", message=failure.message) if one.property == name else one for one in findings
        ]
        return changed, failures | {name: failure}

    def _with_shared(
        self, findings: list[Finding], failures: dict[str, PropertyFailed]
    ) -> tuple[list[Finding], dict[str, PropertyFailed]]:
        """The findings, and that parameters fail where the code has one small layer for all heads, or for each of them.

        Or where it has layers that the module does not know.
        """
        shared, slices, reading = self.chosen.limits.shared, self.chosen.limits.slices, self.chosen.reading
        parts = {part for role in ROLES for part in reading.layer(role).weight.split(".")}
        listed = [name for name in reading.registered if name in parts]
        if not shared and not slices and not listed:
            return findings, failures
        if listed:
            return _with_parameters(
                f"its parameters are not all there: {listed[0]} is a plain list or tensor", findings, failures
            )
        size = building.LOOK["E"], building.LOOK["D"]
        name = min(shared or slices, key=lambda one: not one.endswith("weight"))
        message = f"{name} has shape ({size[1]}, {size[1]}); the contract's has ({size[0]}, {size[0]})"
        if not shared:
            message = (
                f"{name} has only the blocks ({size[1]}, {size[1]}) of each head; the contract's has the whole matrix"
            )
        return _with_parameters(message, findings, failures)

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
    chosen = reader.read(search)
    if isinstance(chosen, NotRead):
        return unread.why(source.structure, source.contract, source.names, chosen)
    connection.adapt(chosen.adapter)
    limits = chosen.limits
    masked = limits.of_masked_function()
    takes_mask = also is not None and chosen.reading.mask != "none"
    if also is not None and takes_mask:
        tests = [*tests, *_with_mask(_tests(source.folder.parent / also.kata), also.properties, tests)]
    left_out = description.left_out(chosen.reading, source.contract, limits)
    one_feature = all(one.one_feature for one in limits.conventions)
    as_wide = limits.has_one_width or (source.contract.has_score and bool(limits.as_they_are))
    tests = _possible(tests, chosen.reading, one_feature=one_feature, as_wide=as_wide)
    hides = chosen.reading.causal and limits.place is None
    reference = Local(_reference(source, limits, hides=hides)) if hides or limits.conventions else plain
    if chosen.reading.keys_are_values:
        reference = Local(_keys_as_values(_reference(source), source.contract.entry))
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


def _with_parameters(
    message: str, findings: list[Finding], failures: dict[str, PropertyFailed]
) -> tuple[list[Finding], dict[str, PropertyFailed]]:
    """The findings, with parameters that are not the contract's."""
    changed = [
        replace(one, outcome="failed", message=message) if one.property == "parameters" else one for one in findings
    ]
    return changed, failures | {"parameters": PropertyFailed(message)}


def _tests(folder: Path) -> list[HiddenTest]:
    return hidden_tests.load(folder / f"test_{folder.name}.py")


def _with_mask(tests: list[HiddenTest], chosen: tuple[str, ...], others: list[HiddenTest]) -> list[HiddenTest]:
    """The chosen ones of the function that takes a mask; those with the name of another test are called "… with mask"."""
    taken = {one.property.name for one in others}
    found = [one for one in tests if one.property.name in chosen]
    return [
        replace(one, property=replace(one.property, name=f"{one.property.name}_with_mask"))
        if one.property.name in taken
        else one
        for one in found
    ]


def _possible(
    tests: list[HiddenTest], reading: Reading, *, one_feature: bool, as_wide: bool = False
) -> list[HiddenTest]:
    """The tests, with the sizes of their cases as the code can take them."""
    same = {"Tq": "Tk"} if reading.square else {}
    same |= {"Dv": "D", "context_dim": "E", "query_dim": "key_dim"} if reading.alike else {}
    same |= {"input_dim": "key_dim", "value_dim": "key_dim"} if reading.alike else {}
    same |= {"hidden_dim": "key_dim", "query_dim": "key_dim"} if as_wide else {}
    same |= {"value_dim": "key_dim"} if reading.is_one_of_heads or len(reading.fused) == 3 else {}
    same |= {"Dv": "key_dim"} if reading.keys_are_values else {}
    same |= {"D": "E"} if reading.one_head else {}
    fixed = ({"G": 1} if reading.one_group else {}) | ({"H": 1} if reading.one_head else {})
    of_reading = reading.mlp_ratio or reading.head_width or reading.causal or reading.even
    if not same and not fixed and one_feature and not of_reading:
        return tests
    kept = []
    for test in tests:
        every = [case for case in test.property.cases if not isinstance(case, Drawn)]
        wide = [case for case in every if case is None or case.as_dict().get("E") != 1 or one_feature]
        cases = dict.fromkeys(_alike(case, same, fixed, reading) for case in wide)
        kept.append(replace(test, property=replace(test.property, cases=tuple(cases) or test.property.cases)))
    return kept


def _alike(case: Sizes | None, same: dict[str, str], fixed: dict[str, int], reading: Reading) -> Sizes | None:
    """A case with each of these sizes as large as the other, and with those that the code fixes."""
    if case is None:
        return None
    sizes = case.as_dict()
    equal = {one: sizes[other] for one, other in same.items() if one in sizes and other in sizes}
    if reading.causal and not reading.square and {"Tq", "Tk"} <= sizes.keys():
        equal["Tk"] = max(sizes["Tq"], sizes["Tk"])  # the first of more queries than keys would see no key
    if reading.even and {"D", "E", "H"} <= sizes.keys():
        even = int(sizes["D"]) + int(sizes["D"]) % 2
        equal |= {"D": even, "E": int(sizes["H"]) * even}
    if reading.head_width and {"D", "E", "H"} <= sizes.keys():
        width = min(int(sizes["D"]), reading.head_width)  # that of the contract's heads, which the code's have room for
        equal |= {"D": width, "E": int(sizes["H"]) * width}
    tokens = int(sizes.get("Tk", sizes.get("T", 0)))
    if reading.one_head and tokens and sizes.get("E") == 2 * tokens * int(sizes.get("H", 1)):
        equal |= {"E": 2 * tokens, "D": 2 * tokens}  # of the properties that read weights off the columns of a head
    if reading.mlp_ratio and {"M", "E"} <= sizes.keys():
        equal["M"] = reading.mlp_ratio * sizes["E"]
    if reading.is_one_of_heads and "key_dim" in sizes:
        equal["input_dim"] = 2 * sizes["key_dim"]
    return Sizes(**(sizes | equal | {one: size for one, size in fixed.items() if one in sizes}))


def _reference(source: Source, limits: Limits | None = None, *, hides: bool = False) -> types.ModuleType:
    """The reference, with the conventions of `limits`, hiding later keys with `hides`; and the function that takes a mask."""
    also = source.contract.with_mask
    namespace = types.ModuleType(source.solution.stem)
    paths = [source.solution] + ([source.solution.with_name(f"{also.kata}.py")] if also is not None else [])
    for path in reversed(paths):
        text = path.read_text("utf-8")
        if hides and path == source.solution:
            text = causal.reference(text)
        if limits is not None:
            text = conventions.reference(text, limits.conventions)
        exec(compile(text, str(path), "exec", dont_inherit=True), namespace.__dict__)
    namespace.__file__ = str(source.solution)
    return namespace


def _keys_as_values(namespace: types.ModuleType, entry: str) -> types.ModuleType:
    """The reference's module with a learned score, which takes the keys for the values."""
    plain: Any = getattr(namespace, entry)

    class KeysAsValues(plain):  # type: ignore[misc]
        def forward(self, query: Any, keys: Any, values: Any, *keep: Any) -> Any:
            return super().forward(query, keys, keys, *keep)

    setattr(namespace, entry, KeysAsValues)
    return namespace
