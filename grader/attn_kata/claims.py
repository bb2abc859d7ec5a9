"""What the hidden tests claim, read from their source: for commands that must not wait for torch, which the tests import."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from attn_kata import catalog
from attn_kata.resources import katas_folder

_STANDARD = Path(__file__).parent / "properties" / "standard.py"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A property of one kata, from the `@claims(…)` of its hidden test."""

    kata: str
    name: str
    claim: str
    tier: str
    look_at: str | None
    needs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Words:
    """What a standard property says of itself. `claim` may name the inputs of the entry point."""

    claim: str
    tier: str
    look_at: str | None


@lru_cache(maxsize=1)
def load() -> dict[str, list[Claim]]:
    """Every property by its name, in every kata that has it, in the order of the katas' names."""
    standard = _standard()
    found: dict[str, list[Claim]] = {}
    for slug in catalog.slugs():
        file = katas_folder() / slug / f"test_{slug}.py"
        for claim in _claims(slug, ast.parse(file.read_bytes()).body, standard) if file.is_file() else ():
            found.setdefault(claim.name, []).append(claim)
    return found


def _claims(slug: str, body: list[ast.stmt], standard: dict[str, _Words]) -> Iterator[Claim]:
    """The properties of one file: functions with `@claims(…)`, and what `standard.…(…)` makes."""
    constants = _constants(body)
    for node in body:
        if isinstance(node, ast.FunctionDef):
            call = _decorator(node, "claims")
            if call is not None:
                said = _keywords(call)
                words = _Words(
                    claim=_text(call.args[0], constants),
                    tier=str(said.get("tier") or "core"),
                    look_at=str(said["look_at"]) if said.get("look_at") else None,
                )
                yield _claim(slug, node.name, words, said)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            call = _call_of(node.value, "standard", standard)
            name = node.targets[0].id
            if call is not None and name.startswith("test_"):
                usual = standard[call.func.attr]  # type: ignore[attr-defined]
                said = _keywords(call)
                words = _Words(
                    claim=str(said.get("claim") or usual.claim).format(inputs=_inputs(call.args[0], constants)),
                    tier=usual.tier,
                    look_at=str(said.get("look_at") or usual.look_at),
                )
                yield _claim(slug, name, words, said)


def _claim(slug: str, test: str, words: _Words, said: dict[str, object]) -> Claim:
    needs = said.get("needs") or ()
    return Claim(
        kata=slug,
        name=test.removeprefix("test_"),
        claim=words.claim,
        tier=words.tier,
        look_at=words.look_at,
        needs=(needs,) if isinstance(needs, str) else tuple(str(one) for one in needs if one),  # type: ignore[attr-defined]
    )


@lru_cache(maxsize=1)
def _standard() -> dict[str, _Words]:
    """What each standard property says of itself, by name."""
    found = {}
    for node in ast.parse(_STANDARD.read_bytes()).body:
        call = _decorator(node, "_standard") if isinstance(node, ast.FunctionDef) else None
        if call is not None:
            said = _keywords(call)
            words = _Words(
                claim=str(_literal(call.args[0])), tier=str(said.get("tier") or "core"), look_at=str(said["look_at"])
            )
            found[node.name] = words  # type: ignore[attr-defined]
    return found


def _inputs(entry: ast.expr, constants: dict[str, ast.expr]) -> str:
    """The `inputs` of an entry point, as the call that made it names them, or made the one that it was replaced in."""
    made = _constant(entry, constants)
    if not isinstance(made, ast.Call):
        return "the inputs"
    inputs = _keywords(made).get("inputs")
    if inputs is None and isinstance(made.func, ast.Name) and made.func.id == "replace":
        return _inputs(made.args[0], constants)
    return str(inputs or "the inputs")


def _decorator(test: ast.FunctionDef, name: str) -> ast.Call | None:
    """The call `@name(…)` above a function, with an argument."""
    marks = (mark for mark in test.decorator_list if isinstance(mark, ast.Call) and mark.args)
    return next((mark for mark in marks if isinstance(mark.func, ast.Name) and mark.func.id == name), None)


def _call_of(value: ast.expr, module: str, names: Container[str]) -> ast.Call | None:
    """`value` if it is a call `module.name(…)` of one of these names."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Name):
        return value if value.func.value.id == module and value.func.attr in names else None
    return None


def _keywords(call: ast.Call) -> dict[str, object]:
    return {one.arg: _literal(one.value) for one in call.keywords if one.arg}


def _constants(body: list[ast.stmt]) -> dict[str, ast.expr]:
    """What a file assigns to names, also to several at once."""
    found: dict[str, ast.expr] = {}
    for node in body:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(target.elts, value.elts, strict=True) if several else [(target, value)]  # type: ignore[attr-defined]
            found.update((name.id, made) for name, made in pairs if isinstance(name, ast.Name))
    return found


def _text(node: ast.expr, constants: dict[str, ast.expr]) -> str:
    """A string, or an f-string of the file's constants, as the numbers of a training."""
    if not isinstance(node, ast.JoinedStr):
        return str(_literal(node) or "")
    parts = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            spec = _text(part.format_spec, constants) if part.format_spec is not None else ""
            parts.append(format(_literal(_constant(part.value, constants)), spec))
        else:
            parts.append(str(_literal(part)))
    return "".join(parts)


def _constant(node: ast.expr, constants: dict[str, ast.expr]) -> ast.expr:
    """What a name stands for; for `LEARNING.B`, the argument `B` of the call that made LEARNING."""
    if isinstance(node, ast.Name):
        return constants.get(node.id, node)
    if isinstance(node, ast.Attribute):
        made = _constant(node.value, constants)
        if isinstance(made, ast.Call):
            return next((one.value for one in made.keywords if one.arg == node.attr), node)
    return node


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
