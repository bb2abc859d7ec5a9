"""What is wrong in code however it is read: as its lines show it, and as every call that runs shows it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from attn_kata.diagnosis import catalogue, lines
from attn_kata.diagnosis.flow.shown import Shown
from attn_kata.readings.candidates import dropouts
from attn_kata.readings.choice import Beside
from attn_kata.readings.source import structure, vocabulary
from attn_kata.readings.source.structure import Definition, Structure
from attn_kata.report.model import Diagnosis, NamedMistake

MOST_LINES = 3  # that are named for one reason
MOST_OTHERS = 4  # definitions that are not graded
_ANYWAY = "With any reading, line {line} "
# Another file may set it.
_UNSET = "reads a name that nothing in the file sets or imports, `{text}` (python.undefined_name)"


@dataclass(frozen=True, kw_only=True)
class _Line:
    """What a line does that is wrong with any reading, and who finds such lines. `{text}` is the line."""

    does: str
    find: Callable[..., list[int]]
    id: str = ""  # the mistake, where the line is certain to make it
    doubtful: bool = False  # whether it may be right for tensors of two dimensions: said where nothing is graded
    of_classes: bool = False  # whether it is certain in a class alone: the caller of a function may know the mode
    may_be_left_over: bool = False  # whether right code may have such a line: it is a mistake where nothing is graded
    seen_in_numbers: bool = False  # whether a grading would show it: it is looked for where nothing is graded


_LINES = (
    _Line(
        id="python.unused_result",
        does="has no effect. `{text}` gives a new tensor, and nothing uses it",
        find=lines.have_no_effect,
        may_be_left_over=True,
    ),
    _Line(
        id="python.unused_result",
        does="calls a layer, and nothing reads the result, `{text}`",
        find=lines.compute_for_nothing,
    ),
    _Line(
        id="python.unused_result",
        does="computes the softmax, and nothing reads the result, `{text}`",
        find=lines.softmax_for_nothing,
    ),
    _Line(
        id="python.arguments",
        does="gives nn.Softmax the scores: it is made with a dimension alone, and called with the scores",
        find=lines.make_a_softmax_of_scores,
    ),
    _Line(
        id="mask.zero_fill",
        does="gives hidden keys a score of almost 0, so they keep weight",
        find=lines.fill_with_almost_nothing,
    ),
    _Line(
        id="split.no_transpose",
        does="moves the heads before the tokens with a view and no transpose, which mixes both",
        find=lines.put_heads_before_time,
    ),
    _Line(
        id="python.undefined_name",
        does="reads an attribute that nothing in the file sets, `{text}`",
        find=lines.read_what_nothing_sets,
    ),
    _Line(
        id="module.repeated",
        does="puts one and the same layer into the list several times, so they share their weights",
        find=lines.hold_one_layer_several_times,
    ),
    _Line(
        id="dropout.always",
        does="drops in eval() too, as its functional dropout does not follow the mode",
        find=lines.drop_without_a_mode,
        of_classes=True,
    ),
    _Line(
        id="dropout.always",
        does="makes its dropout in the call, where it is always in train() mode, so it drops in eval() too",
        find=lines.make_a_dropout_when_called,
    ),
    _Line(
        id="module.rebuilt",
        does="makes its linear layers in the call, so every call has new random weights that nothing can train",
        find=lines.make_a_linear_layer_when_called,
    ),
    _Line(
        id="gradient.in_place",
        does="changes the result of a softmax in place, so backward raises, `{text}`",
        find=lines.change_softmax_in_place,
    ),
    _Line(
        id="additive.no_tanh",
        does="scores a query and a key side by side with a linear layer and no tanh",
        find=lines.score_without_tanh,
    ),
    _Line(
        id="scale.heads",
        does="scales by the number of heads, not by the size of a head",
        find=lines.scale_by_heads,
    ),
    _Line(
        id="scale.embed_dim",
        does="scales by the width of all heads together, not by the size of a head",
        find=lines.scale_by_width,
        seen_in_numbers=True,
    ),
    _Line(
        id="dropout.always",
        does="drops weights in eval() too, as its dropout_p does not ask for self.training",
        find=lines.drop_in_eval_too,
        of_classes=True,
    ),
    _Line(
        id="softmax.no_dim",
        does="leaves the dimension of its softmax to torch. That is the last one of a tensor of two dimensions, and the wrong "
        "one where it has three or four",
        find=lines.softmaxes_without_dim,
        doubtful=True,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Anyway:
    """What is wrong in a definition however it is read.

    mistakes: those that are certain, in what is to be graded.
    notes: the same in words, then what is wrong so in definitions that are not graded.
    """

    mistakes: list[Shown] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def without_mistakes(self) -> list[str]:
        """The notes about everything else."""
        ids = [one.id for one in self.mistakes]
        return [
            note
            for note in self.notes
            if not (note.startswith(_ANYWAY[:16]) and any(f"({id})" in note for id in ids))
            and not any(note.endswith(f"this is {id}") for id in ids)
        ]


def in_lines(source: bytes, code: Structure, definition: Definition | None, *, ungraded: bool = False) -> Anyway:
    """What the lines show of a definition and of what it uses; with `ungraded`, also what is doubtful."""
    reached = [] if definition is None else code.reach(definition)
    names = [one.name for one in reached]
    others = [one for one in structure.attention_like(code) if one.name not in names]
    texts = source.decode("utf-8", "replace").splitlines()
    asked = [one for one in _LINES if ungraded or not (one.doubtful or one.seen_in_numbers)]
    found = [(one, one.find(source, every=True)) for one in asked]
    unset = lines.read_names(source, code.never_set) if code.never_set else []
    found.append((_Line(does=_UNSET, find=lines.read_names), unset))

    def within(numbers: list[int], parts: list[Definition]) -> list[int]:
        among = [one.lines for one in parts]
        return [line for line in numbers if any(first <= line <= last for first, last in among)][:MOST_LINES]

    def said(begin: str, parts: list[Definition]) -> list[str]:
        return [
            (begin + one.does).format(line=line, text=texts[line - 1].strip()) + (f" ({one.id})" if one.id else "")
            for one, numbers in found
            for line in within(numbers, parts)
        ]

    mistakes = [
        Shown(id=one.id, line=line)
        for one, numbers in found
        for line in within(numbers, [each for each in reached if each.is_class or not one.of_classes])[:1]
        if one.id and not one.doubtful and (ungraded or not one.may_be_left_over)
    ]
    mistakes += [] if definition is None else _misspelt(definition, code, texts)
    mistakes += _without_super(reached, code)[:1]
    if definition is not None and ungraded:
        mistakes += [
            *_never_used(definition, "\n".join(texts)),
            *_mask_lost(definition),
            *_never_drops(definition, code),
        ]
    notes = said(_ANYWAY, reached)
    if definition is not None:
        name = "forward" if definition.is_class else definition.name
        notes += [
            f"{name} never reads '{mask}'. If that should hide keys, this is mask.lost"
            for mask in _masks_never_read(definition)
        ]
    for other in others[:MOST_OTHERS]:
        notes += said(f"{other.name} is not graded, but line {{line}} ", [other])
    return Anyway(mistakes=mistakes, notes=notes)


def _misspelt(definition: Definition, code: Structure, texts: list[str]) -> list[Shown]:
    """The method of an nn.Module that is meant to be __init__ or forward, and that nothing in the file names; else [].

    Where another class is the base, that may call it. A name that somebody could choose, as `init` or `_forward`, is none.
    """
    name = definition.misspelt
    could_be_chosen = "forward" in name if "init" not in name else not name.startswith("_")
    of_torch = code.imports.get("nn", "").startswith("torch")
    if not name.islower() or could_be_chosen or not of_torch or _OF_MODULE.match(definition.text) is None:
        return []
    found = [line for line, text in enumerate(texts, 1) if re.search(rf"\b{re.escape(name)}\b", text)]
    first, last = definition.lines
    is_here = len(found) == 1 and first <= found[0] <= last
    return [Shown(id="python.misspelt_method", line=found[0])] if is_here else []


def _without_super(reached: list[Definition], code: Structure) -> list[Shown]:
    """The constructors that never call that of nn.Module: such a module raises as soon as it gets a layer, or is called."""
    found = []
    for one in reached:
        node = next(iter(structure.tree_of(one.text).body), None)
        if not isinstance(node, ast.ClassDef) or _OF_MODULE.match(one.text) is None or node.decorator_list:
            continue
        methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
        sets_up = re.search(r"\bsuper\b|Module\.__init__", structure.code_of(one.text)) is not None
        of_torch = code.imports.get("nn", code.imports.get("torch", "")).startswith("torch")
        if "__init__" in methods and "__call__" not in methods and of_torch and not sets_up:
            line = one.lines[0] + methods["__init__"].lineno - 1
            found.append(Shown(id="module.no_super", line=line))
    return found


def _never_used(definition: Definition, text: str) -> list[Shown]:
    """The first of two or more linear layers for q, k and v that a class makes, and that nothing in the file names again.

    One alone may be left over in right code.
    """
    if re.search(r"\b(?:getattr|named_\w+|modules|children|__dict__)\b", text):
        return []
    layers = [
        name
        for name, made in definition.layers.items()
        if made == "Linear" and vocabulary.role_of(name) in ("q", "k", "v")
    ]
    unused = [name for name in layers if len(re.findall(rf"\.{re.escape(name)}\b", structure.code_of(text))) == 1]
    return [Shown(id="project.missing", line=_line_of(unused[0], definition))] if len(unused) > 1 else []


def _never_drops(definition: Definition, code: Structure) -> list[Shown]:
    """The dropout of the weights that a definition, or what it uses, makes and never calls; else []."""
    found = dropouts.made_in_vain(definition, code)
    return [] if found is None else [Shown(id="dropout.never", line=_line_of(found[1], found[0]))]


def _line_of(name: str, definition: Definition) -> int:
    """The line of a definition that first names an attribute of its own."""
    lines = definition.text.split("\n")
    first = next((place for place, each in enumerate(lines) if re.search(rf"\bself\.{re.escape(name)}\b", each)), 0)
    return definition.lines[0] + first


_OF_MODULE = re.compile(r"class \w+\s*\(\s*(?:torch\.)?nn\.Module\s*\)\s*:")


def _mask_lost(definition: Definition) -> list[Shown]:
    """That its call never reads the mask that it takes, where it takes one alone, by the name of one for attention; else []."""
    taken = [one.name for one in definition.call if _MASK.search(one.name)]
    lost = len(taken) == 1 and taken == _masks_never_read(definition) and _PLAIN_MASK.fullmatch(taken[0])
    if not lost:
        return []
    name = "forward" if definition.is_class else definition.name
    lines = definition.text.split("\n")
    first = next((place for place, each in enumerate(lines) if re.search(rf"\bdef {name}\b", each)), 0)
    return [Shown(id="mask.lost", line=definition.lines[0] + first)]


_PLAIN_MASK = re.compile(r"(?:attn_|attention_|padding_|key_padding_|src_|causal_)?mask")


def _masks_never_read(definition: Definition) -> list[str]:
    """The parameters of its call that have the name of a mask, and that the call never reads."""
    name = "forward" if definition.is_class else definition.name
    called = [
        node
        for node in ast.walk(structure.tree_of(definition.text))
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    read = {one.id for each in called for one in ast.walk(each) if isinstance(one, ast.Name)}
    masks = [one.name for one in definition.call if _MASK.search(one.name) and one.name not in read]
    return masks if called else []


_MASK = re.compile(r"mask|causal|casual", re.IGNORECASE)


def with_calls(seen: Anyway, shown: list[tuple[Definition, Shown]], reached: list[str]) -> Anyway:
    """The same with what the calls of definitions show. `reached`: the names of what is to be graded and what it uses."""
    entries = catalogue.load()
    mistakes = list(seen.mistakes)
    notes = list(seen.notes)
    for definition, one in shown:
        known = {(each.id, each.line) for each in mistakes}
        if definition.name in reached and one.id not in {id for id, _ in known}:
            mistakes.append(one)
        elif definition.name not in reached and (one.id, one.line) not in known:
            title = entries[one.id].title
            notes.append(
                f"{definition.name} is not graded, but in line {one.line}: {title[0].lower()}{title[1:]} ({one.id})"
            )
    return Anyway(mistakes=mistakes, notes=list(dict.fromkeys(notes)))


def of_beside(every: Sequence[Beside], source: bytes) -> list[Diagnosis]:
    """What the mistakes beside a reading may be: each set has one mistake of each."""
    sets = itertools.product(*([Shown(id=id, line=one.line) for id in one.ids] for one in every))
    return [named(list(each), source) for each in sets]


def named(mistakes: list[Shown], source: bytes) -> Diagnosis:
    """The mistakes with their words and lines."""
    entries = catalogue.load()
    texts = source.decode("utf-8", "replace").splitlines()
    return Diagnosis(
        mistakes=[
            NamedMistake(
                id=one.id,
                title=entries[one.id].title,
                explanation=entries[one.id].plain,
                question=entries[one.id].question,
                line=one.line if 0 < one.line <= len(texts) else None,
                source_line=texts[one.line - 1].strip() if 0 < one.line <= len(texts) else None,
            )
            for one in {each.id: each for each in reversed(mistakes)}.values()
        ][::-1]
    )
