"""What the code of a source asks of config objects: `config.n_embd`, `cfg['heads']`, `Config.width`."""

from __future__ import annotations

import ast
import re

from attn_kata.readings.source import vocabulary

_WHOLE = ("get", "to_dict", "copy", "items")  # methods of a config, no sizes in it
_TURNS = re.compile(r"(?:use|with|enable)_?(?:rope|rotary)")
_A_CONFIG = re.compile(r"_(?:configs?|cfg|params|hparams|args)$")
_GLOBAL_CONFIGS = re.compile(
    r"^(?:\w*config|\w*cfg|conf|args|hparams|hps|params|opts?|model_args|settings|hyperparams|constants)$",
    re.IGNORECASE,
)


def global_configs(every: list[ast.AST]) -> tuple[tuple[str, str], ...]:
    """What is asked of config objects that are no parameters: (Config, n_embd) of `Config.n_embd`."""
    parameters = {part.arg for part in every if isinstance(part, ast.arg)}
    called = {part.func.id for part in every if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
    found = [
        (part.value.id, part.attr)
        for part in every
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and _GLOBAL_CONFIGS.match(part.value.id)
    ]
    return tuple(dict.fromkeys(pair for pair in found if pair[0] not in parameters | called))


def parts_asked(node: ast.ClassDef, config: str) -> list[str]:
    """The parts of a config that are asked in turn: `model` of `config.model.n_embd`, and of `config["model"]["n_embd"]`.

    And those that are handed on by a name that says so: `Head(config.head_config)`.
    """
    asked = [_asked_in_turn(part, config) for part in ast.walk(node)]
    named = [name for names in asked for name in names[-1:] if _A_CONFIG.search(name)]
    return [name for names in asked for name in names[:-1] if name not in ("device", "dtype")] + named


def asked_of(node: ast.ClassDef, config: str) -> list[str]:
    """What a class asks of its config: `config.x`, `config["x"]`, `self.config.x`. Not what it asks only if it is there."""
    found = []
    called = {part.func for part in ast.walk(node) if isinstance(part, ast.Call)}
    for part in ast.walk(node):
        asked = [] if part in called else _asked_in_turn(part, config)[-1:]  # config.validate()
        if (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr == "get"
            and _is_config(part.func.value, config)
            and part.args
            and isinstance(part.args[0], ast.Constant)
        ):
            asked = [str(part.args[0].value)]
        if isinstance(part, ast.Call) and ast.unparse(part.func) == "getattr" and part.args:
            names = [str(one.value) for one in part.args[1:2] if isinstance(one, ast.Constant)]
            asked = [name for name in names if _TURNS.match(name) and _is_config(part.args[0], config)]
        found += [(part.lineno, part.col_offset, name) for name in asked if name not in _WHOLE]  # type: ignore[attr-defined]
    if any(_asked_in_turn(part, config)[-1:] == ["items"] for part in ast.walk(node)):
        found += _read_before_set(node)  # for name, value in config.items(): setattr(self, name, value)
    optional = set(re.findall(rf"hasattr\(\s*(?:self\.)?{config}\s*,\s*[\"'](\w+)[\"']", ast.unparse(node)))
    # A number of key-value heads that may be left out is asked all the same: without it there are no groups to grade.
    # So is a rotation: what it does wrong would not be seen.
    optional = {name for name in optional if vocabulary.size_of(name) != "G" and not _TURNS.match(name)}
    return [name for _, _, name in sorted(found) if name.isidentifier() and name not in optional]


def _read_before_set(node: ast.ClassDef) -> list[tuple[int, int, str]]:
    """What a constructor reads of `self` and has not set, each with its place."""
    inits = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
    inside = [part for init in inits for part in ast.walk(init)]
    called = {part.func for part in inside if isinstance(part, ast.Call)}
    own = sorted(
        (part.lineno, isinstance(part.ctx, ast.Store), part.col_offset, part.attr)  # of one line, first what is read
        for part in inside
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
        if part not in called
    )
    known = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    found = []
    for line, is_set, column, name in own:
        if not is_set and name not in known:
            found.append((line, column, name))
        known.add(name)
    return found


def _asked_in_turn(node: ast.AST, config: str) -> list[str]:
    """The names by which an expression asks a config, the outermost part first; [] for any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        if names and _is_config(node, config):
            break
        names.append(node.attr if isinstance(node, ast.Attribute) else str(node.slice.value))  # type: ignore[attr-defined]
        node = node.value
    return names[::-1] if names and isinstance(node, ast.expr) and _is_config(node, config) else []


def is_asked_for_sizes(name: str, init: ast.FunctionDef) -> bool:
    """Whether a constructor only asks an argument for its parts, or hands it on, and one part at least is a size: a config."""
    uses = [part for part in ast.walk(init) if isinstance(part, ast.Name) and part.id == name]
    asked = [part for part in ast.walk(init) if isinstance(part, (ast.Attribute, ast.Subscript)) and part.value in uses]
    words = [
        part.attr
        if isinstance(part, ast.Attribute)
        else part.slice.value
        if isinstance(part.slice, ast.Constant)
        else None
        for part in asked
    ]
    handed = [
        one
        for part in ast.walk(init)
        if isinstance(part, (ast.Call, ast.Assign))
        for one in (
            [*part.args, *(each.value for each in part.keywords)] if isinstance(part, ast.Call) else [part.value]
        )
    ]
    alone = all(use in handed or any(use is part.value for part in asked) for use in uses)
    return alone and any(isinstance(word, str) and vocabulary.size_of(word) in ("E", "H", "D") for word in words)


def _is_config(node: ast.expr, config: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == config and isinstance(node.value, ast.Name) and node.value.id == "self"
    return isinstance(node, ast.Name) and node.id == config
