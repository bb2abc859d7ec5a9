"""Reads the structure of a source from its syntax tree. Nothing of the source runs."""

from __future__ import annotations

import ast
import builtins
import difflib
import io
import re
import symtable
import sys
import textwrap
import tokenize
from dataclasses import replace

from attn_kata.protocol.usual_names import USUAL_NAMES
from attn_kata.readings.source import reached, vocabulary
from attn_kata.readings.source.structure import Definition, Parameter, Structure
from attn_kata.sources import FILE_ITSELF

MOST_BYTES = 256 << 10  # parsing more takes seconds
_WHOLE = ("get", "to_dict", "copy", "items")  # methods of a config, no sizes in it
_A_CONFIG = re.compile(r"_(?:configs?|cfg|params|hparams|args)$")
_CONFIGS = re.compile(r"^(?:configs?|cfg|args|conf|opt|hparams|hps|params|hp|c|cf|model_args|model_config|opts)$")
_GLOBAL_CONFIGS = re.compile(
    r"^(?:\w*config|\w*cfg|conf|args|hparams|hps|params|opts?|model_args|settings|hyperparams|constants)$",
    re.IGNORECASE,
)
_NEARLY_INIT = re.compile(r"_*(?:init|int|inti|intit|initi)_*")
_LAYERS = ("Linear", "Parameter", "Conv1d", "Conv1D", "Dropout")
_PACKAGES = sys.stdlib_module_names | {
    "torch",
    "torchvision",
    "numpy",
    "einops",
    "jaxtyping",
}  # these have no sizes of the code
_CONTAINERS = (
    "ModuleList",
    "Sequential",
    "range",
    "deepcopy",
    "clones",
    "len",
    "int",
    "float",
    "list",
    "clone",
    "get_clones",
)


def of_source(source: bytes) -> Structure:
    """The structure of a source; empty for what is no Python or too long."""
    if len(source) > MOST_BYTES:
        return Structure()
    try:
        tree = ast.parse(source)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        lines = source.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
        return Structure()
    statements = list(_statements(tree.body))
    classes = {node.name: node for node in statements if isinstance(node, ast.ClassDef)}
    found: dict[str, Definition] = {}
    for node in statements:
        if isinstance(node, ast.ClassDef):
            found[node.name] = _class(node, classes, lines)
            found |= {one.name: one for one in _static_methods(node, lines)}
        elif isinstance(node, ast.FunctionDef):
            found[node.name] = _function(node, lines)
    assigned = {
        name.id
        for node in statements
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for name, value in _parts(target, node.value)
        if isinstance(name, ast.Name) and _may_be_number(value)
    }
    unset = _unset(source)
    imports = _imports(tree)
    assumed = () if imports else tuple(sorted(_unset(source, top=True) & USUAL_NAMES.keys()))
    never_set = _never_set(tree, unset) if imports and "*" not in imports else set()
    elsewhere = unset - set(assumed) - _meant_of_self(tree) - never_set  # in another cell, say
    sizes = frozenset(assigned | elsewhere | _imported_sizes(tree))
    also = _aliases(statements, found)
    modules = _modules(statements)
    found = {name: _with_aliases(_with_members(one, modules), also) for name, one in found.items()}
    begins = next((at for at, line in enumerate(lines, 1) if line == FILE_ITSELF), 0)
    every = tuple(found.values())
    return Structure(
        definitions=every,
        globals=sizes,
        unset=frozenset(unset),
        never_set=frozenset(never_set),
        imports=imports,
        makers=_makers(statements),
        assumed=assumed,
        begins=begins,
    )


def _parts(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """The pairs of an assignment: two, of `d_model, n_heads = 512, 8`; one value for several names, where it makes all."""
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(target.elts) == len(value.elts):
            return list(zip(target.elts, value.elts, strict=True))
        return [(each, value) for each in target.elts]
    return [(target, value)]


def _may_be_number(value: ast.expr) -> bool:
    """Whether it may be a number: one, an expression with one, or a part of a config, as `cfg["n_embd"]` and `args.d_model`."""
    of_config = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant)
    return of_config or isinstance(value, (ast.Constant, ast.BinOp, ast.Attribute))


def _aliases(statements: list[ast.stmt], found: dict[str, Definition]) -> dict[str, str]:
    """Other names of definitions, as in `Attention = MultiHeadAttention`."""
    return {
        target.id: node.value.id
        for node in statements
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in found
        for target in node.targets
        if isinstance(target, ast.Name) and target.id not in found
    }


def _makers(statements: list[ast.stmt]) -> dict[str, str]:
    """What is set at module level to make something later, with its line: a lambda, a `partial` of a class, or an eps."""
    return {
        target.id: ast.unparse(node)
        for node in statements
        if isinstance(node, ast.Assign)
        if isinstance(node.value, ast.Lambda)
        or (
            isinstance(node.value, ast.Constant) and isinstance(node.value.value, float) and 0 < node.value.value < 1e-3
        )
        or (isinstance(node.value, ast.Call) and _last_part(node.value.func) == "partial")
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _modules(statements: list[ast.stmt]) -> list[str]:
    """The names of what stands for a module of another file: `layers = SimpleNamespace(Norm=Norm)`."""
    return [
        target.id
        for node in statements
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if isinstance(node.value.func, ast.Attribute) and node.value.func.attr == "SimpleNamespace"
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def _with_members(one: Definition, modules: list[str]) -> Definition:
    """The definition, which reads what it takes of such a module: `Norm`, in `layers.Norm(width)`."""
    found = [name for module in modules for name in re.findall(rf"\b{module}\.(\w+)", one.text)]
    return replace(one, reads=one.reads | set(found)) if found else one


def _with_aliases(one: Definition, also: dict[str, str]) -> Definition:
    """The definition, which names others as they are defined."""
    if not also.keys() & (one.reads | set(one.layers.values())):
        return one
    layers = {name: also.get(made, made) for name, made in one.layers.items()}
    return replace(one, reads=one.reads | {also[name] for name in one.reads & also.keys()}, layers=layers)


def _unset(source: bytes, *, top: bool = False) -> set[str]:
    """The names that its functions read and nothing sets: of code without the cell or the file that has its sizes.

    `top`: also those that are read outside of all functions, as the `nn` of `class Attention(nn.Module)`.
    """
    try:
        table = symtable.symtable(source.decode("utf-8"), "source", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return set()
    own = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    found = {symbol.get_name() for symbol in table.get_symbols() if top and symbol.is_referenced()}
    waiting = list(table.get_children())
    while waiting:
        inner = waiting.pop()
        waiting += inner.get_children()
        found |= {symbol.get_name() for symbol in inner.get_symbols() if symbol.is_global() and symbol.is_referenced()}
        own |= {
            symbol.get_name() for symbol in inner.get_symbols() if symbol.is_declared_global() and symbol.is_assigned()
        }
    return found - own - set(dir(builtins))


def _meant_of_self(tree: ast.Module) -> set[str]:
    """The names that a method reads alone and that its class has as attributes: `d_k` where `self.d_k` is meant.

    What a constructor reads alone may be a number at module level, which it keeps.
    """
    found: set[str] = set()
    for one in ast.walk(tree):
        if not isinstance(one, ast.ClassDef):
            continue
        kept = {
            node.attr
            for node in ast.walk(one)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
        }
        methods = [each for each in one.body if isinstance(each, ast.FunctionDef)]
        alone = {
            each.name: {node.id for node in ast.walk(each) if isinstance(node, ast.Name)} & kept for each in methods
        }
        in_constructor = alone.get("__init__", set())
        found |= {name for method, names in alone.items() if method != "__init__" for name in names} - in_constructor
    return found


def _never_set(tree: ast.Module, unset: set[str]) -> set[str]:
    """The unset names that calls of classes read, where all sizes are arguments: no constructor, and no function, reads one."""
    calls: set[str] = set()
    rest: set[str] = set()
    for one in tree.body:
        for part in one.body if isinstance(one, ast.ClassDef) else [one]:
            is_call = isinstance(one, ast.ClassDef) and isinstance(part, ast.FunctionDef) and part.name != "__init__"
            names = {node.id for node in ast.walk(part) if isinstance(node, ast.Name)} & unset
            (calls if is_call else rest).update(names)
    return set() if rest else calls


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements at the top level, also those in a condition or a `try`."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If):
            found += [*_statements(node.body), *_statements(node.orelse)]
        elif isinstance(node, ast.Try):
            found += [
                *_statements(node.body),
                *(each for handler in node.handlers for each in _statements(handler.body)),
            ]
        else:
            found.append(node)
    return found


def _imports(tree: ast.Module) -> dict[str, str]:
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[(alias.asname or alias.name).partition(".")[0]] = alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = "." * node.level + (node.module or "").partition(".")[0]
    return found


def _imported_sizes(tree: ast.Module) -> set[str]:
    """The names of sizes that come from other files and are not called: `from constants import D_MODEL, n_heads`."""
    found = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] not in _PACKAGES
        for alias in node.names
        if alias.asname is None
    }
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return {
        name for name in found - called if name.isupper() or (name.islower() and vocabulary.size_of(name) is not None)
    }


def _class(node: ast.ClassDef, classes: dict[str, ast.ClassDef], lines: list[str]) -> Definition:
    family = _family(node, classes)
    methods: dict[str, ast.FunctionDef] = {}
    for one in family:
        for part in one.body:
            if isinstance(part, ast.FunctionDef):
                methods.setdefault(part.name, part)
    init, forward = methods.get("__init__"), methods.get("forward") or methods.get("__call__")
    misspelt = "" if init is not None else next((name for name in methods if _NEARLY_INIT.fullmatch(name)), "")
    if forward is None and (near := difflib.get_close_matches("forward", methods, 1, 0.85)):
        misspelt = near[0]
        methods["forward"] = forward = methods[misspelt]
    if init is None:  # a dataclass
        fields_of = [
            part for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
        ]
        build = tuple(
            Parameter(
                name=part.target.id,  # type: ignore[union-attr]
                default=None if part.value is None else ast.unparse(part.value),
                annotation=ast.unparse(part.annotation),
            )
            for part in fields_of
        )
    else:
        build = _handed_on(init, family) or _parameters(init)[1:]
    before = _needed_call(methods) if init is not None and forward is not None else None
    config = next((one.name for one in build if _CONFIGS.match(one.name) or "onfig" in one.annotation), "")
    config = config or next((one.name for one in build if init is not None and _is_asked_for_sizes(one.name, init)), "")
    names = [name for one in family for name in _asked_of(one, config)] if config else []
    parts = {name for one in family for name in _parts_asked(one, config)} if config else set()
    return _definition(
        node,
        lines,
        family=list(family),
        is_class=True,
        build=build,
        call=(
            *(_parameters(forward)[1:] if forward is not None else ()),
            *(_parameters(before)[1:] if before is not None else ()),
        ),
        misspelt=misspelt,
        before=() if before is None else (before.name, *(one.name for one in _parameters(before)[1:])),
        config=config if names else "",
        config_names=tuple(name for name in dict.fromkeys(names) if name not in parts),
        config_parts=tuple(sorted(parts)),
        layers={name: made for one in reversed(family) for name, made in _attributes(one)},
        forward=forward,
        reached=reached.text(family, lines, () if before is None else (before.name,)),
    )


def _handed_on(init: ast.FunctionDef, family: list[ast.ClassDef]) -> tuple[Parameter, ...]:
    """The parameters of the base's constructor, where this one takes whatever that does, in *args or **kwargs."""
    if init.args.vararg is None and init.args.kwarg is None:
        return ()
    constructors = [
        part for one in family for part in one.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"
    ]
    of_base = constructors[constructors.index(init) + 1 :]
    calls = [
        part for part in ast.walk(init) if isinstance(part, ast.Call) and ast.unparse(part.func).startswith("super(")
    ]
    handed = any(isinstance(one, ast.Starred) for call in calls for one in call.args)
    handed = handed or any(one.arg is None for call in calls for one in call.keywords)
    own = _parameters(init)[1:]
    names = {one.name for one in own}
    return (*own, *(one for one in _parameters(of_base[0])[1:] if one.name not in names)) if of_base and handed else ()


def _needed_call(methods: dict[str, ast.FunctionDef]) -> ast.FunctionDef | None:
    """The one method that must be called before `forward`, with the keys: it sets what `forward` reads."""
    forward = methods.get("forward") or methods["__call__"]
    called = [forward]
    for one in called:
        inner = [methods[part.attr] for part in _of_self(one) if part.attr in methods]
        called += [each for each in inner if each not in called]
    reads = {part.attr for one in called for part in _of_self(one) if isinstance(part.ctx, ast.Load)}
    own = {part.attr for one in called for part in _of_self(one) if isinstance(part.ctx, ast.Store)}
    for statement in ast.walk(methods["__init__"]):
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and not _is_none(statement.value):
            own |= {part.attr for part in _of_self(statement) if isinstance(part.ctx, ast.Store)}
    found = []
    for method in methods.values():
        given = {one.name for one in _parameters(method)[1:]}
        sets = {part.attr for part in _of_self(method) if isinstance(part.ctx, ast.Store)}
        is_of_keys = bool(given) and all(vocabulary.input_of(name) in ("k", "v", "context") for name in given)
        others = {one.name for one in _parameters(forward)}
        if (
            method not in called
            and method.name != "__init__"
            and sets & reads - own
            and is_of_keys
            and not given & others
        ):
            found.append(method)
    return found[0] if len(found) == 1 else None


def _of_self(node: ast.AST) -> list[ast.Attribute]:
    """Every `self.name` in it."""
    return [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
    ]


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _static_methods(node: ast.ClassDef, lines: list[str]) -> list[Definition]:
    """The functions with a softmax that a class without a call of its own keeps: `Util.attention`."""
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    if {one.name for one in methods} & {"forward", "__call__"}:
        return []
    static = [one for one in methods if any(ast.unparse(by) == "staticmethod" for by in one.decorator_list)]
    found = [(one, textwrap.dedent("\n".join(lines[one.lineno - 1 : one.end_lineno]))) for one in static]
    return [
        replace(
            _function(one, lines),
            name=f"{node.name}.{one.name}",
            text=text,
            reached=text,
        )
        for one, text in found
        if "softmax" in text.lower()
    ]


def _function(node: ast.FunctionDef, lines: list[str]) -> Definition:
    return _definition(
        node,
        lines,
        family=[node],
        is_class=False,
        build=(),
        call=_parameters(node),
        misspelt="",
        before=(),
        config="",
        config_names=(),
        config_parts=(),
        layers={},
        forward=node,
        reached="\n".join(lines[node.lineno - 1 : node.end_lineno]),
    )


def _definition(
    node: ast.ClassDef | ast.FunctionDef,
    lines: list[str],
    *,
    family: list[ast.stmt],
    is_class: bool,
    build: tuple[Parameter, ...],
    call: tuple[Parameter, ...],
    misspelt: str,
    before: tuple[str, ...],
    config: str,
    config_names: tuple[str, ...],
    config_parts: tuple[str, ...],
    layers: dict[str, str],
    forward: ast.FunctionDef | None,
    reached: str,
) -> Definition:
    last = node.end_lineno or node.lineno
    every = [part for one in family for part in ast.walk(one)]
    return Definition(
        name=node.name,
        is_class=is_class,
        lines=(min([node.lineno, *(one.lineno for one in node.decorator_list)]), last),
        text="\n".join("\n".join(lines[one.lineno - 1 : one.end_lineno]) for one in family),
        reached=reached,
        build=build,
        call=call,
        misspelt=misspelt,
        before=before,
        config=config,
        config_names=config_names,
        config_parts=config_parts,
        global_configs=_global_configs(every),
        layers=layers,
        reads=frozenset(part.id for part in every if isinstance(part, ast.Name)),
        unpacked=tuple(
            names
            for part in every
            if isinstance(part, ast.Assign)
            for names in [_names(part.targets[0])]
            if len(names) in (2, 3) and not _is_shape(part.value)
        ),
        returned=tuple(
            tuple(_last_name(one) for one in part.value.elts)
            for part in (ast.walk(forward) if forward is not None else ())
            if isinstance(part, ast.Return) and isinstance(part.value, ast.Tuple)
        ),
        sizes=tuple(
            names
            for part in every
            if isinstance(part, ast.Assign)
            for names in [_names(part.targets[0])]
            if len(names) > 1 and _is_shape(part.value)
        ),
    )


def _family(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """A class and its bases within the source, each once, nearest first."""
    family = [node]
    for one in family:
        for base in one.bases:
            near = classes.get(base.id) if isinstance(base, ast.Name) else None
            if near is not None and near not in family:
                family.append(near)
    return family


def _parameters(node: ast.FunctionDef) -> tuple[Parameter, ...]:
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    every = [*zip(plain, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return tuple(
        Parameter(
            name=one.arg,
            default=None if default is None else ast.unparse(default),
            annotation="" if one.annotation is None else ast.unparse(one.annotation),
        )
        for one, default in every
    )


def _global_configs(every: list[ast.AST]) -> tuple[tuple[str, str], ...]:
    """What is asked of config objects that are no parameters: (Config, n_embd) of `Config.n_embd`."""
    parameters = {part.arg for part in every if isinstance(part, ast.arg)}
    called = {part.func.id for part in every if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
    found = [
        (part.value.id, part.attr)
        for part in every
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and _GLOBAL_CONFIGS.match(part.value.id)
    ]
    return tuple(dict.fromkeys(pair for pair in found if pair[0] not in parameters | called))


def _parts_asked(node: ast.ClassDef, config: str) -> list[str]:
    """The parts of a config that are asked in turn: `model` of `config.model.n_embd`, and of `config["model"]["n_embd"]`.

    And those that are handed on by a name that says so: `Head(config.head_config)`.
    """
    asked = [_asked_in_turn(part, config) for part in ast.walk(node)]
    named = [name for names in asked for name in names[-1:] if _A_CONFIG.search(name)]
    return [name for names in asked for name in names[:-1] if name not in ("device", "dtype")] + named


def _asked_of(node: ast.ClassDef, config: str) -> list[str]:
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
        found += [(part.lineno, part.col_offset, name) for name in asked if name not in _WHOLE]  # type: ignore[attr-defined]
    if any(_asked_in_turn(part, config)[-1:] == ["items"] for part in ast.walk(node)):
        found += _read_before_set(node)  # for name, value in config.items(): setattr(self, name, value)
    optional = set(re.findall(rf"hasattr\(\s*(?:self\.)?{config}\s*,\s*[\"'](\w+)[\"']", ast.unparse(node)))
    # A number of key-value heads that may be left out is asked all the same: without it there are no groups to grade.
    optional = {name for name in optional if vocabulary.size_of(name) != "G"}
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


def _is_asked_for_sizes(name: str, init: ast.FunctionDef) -> bool:
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


def _attributes(node: ast.ClassDef) -> list[tuple[str, str]]:
    """The attributes that the methods of a class set, with the function that makes each, in order.

    Of a list of layers it is the layer; the parts of a Sequential follow, as `to_out.0` and `to_out.1`.
    """
    found = []
    for part in ast.walk(node):
        if not isinstance(part, (ast.Assign, ast.AnnAssign)) or part.value is None:
            continue
        targets = part.targets if isinstance(part, ast.Assign) else [part.target]
        pairs = [pair for each in targets for pair in _parts(each, part.value)]
        for place, (target, value) in enumerate(pairs):
            if not (
                isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
            ):
                continue
            at = part.lineno, part.col_offset, place
            calls = [call for call in ast.walk(value) if isinstance(call, ast.Call)]
            makers = [_last_part(call.func) for call in calls]
            known = [maker for maker in makers if maker in _LAYERS] + [
                maker for maker in makers if maker not in _CONTAINERS
            ]
            if makers:
                found.append((*at, target.attr, (known or makers)[0]))
            for call in calls:
                if _last_part(call.func) == "Sequential":
                    inside = [_last_part(one.func) for one in call.args if isinstance(one, ast.Call)]
                    found += [(*at, f"{target.attr}.{number}", maker) for number, maker in enumerate(inside)]
    return [(name, made) for *_, name, made in sorted(found)]


def _last_part(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _names(target: ast.expr) -> tuple[str, ...]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return tuple(_last_name(one) for one in target.elts)
    return ()


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant):  # None beside the output
        return ""
    if isinstance(node, ast.Subscript):  # self.cos_cached[:length].to(…)
        return _last_name(node.value)
    return _last_name(node.func.value) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else "?"


def _is_shape(node: ast.expr) -> bool:
    return re.search(r"\.(?:shape|size)\b", ast.unparse(node)) is not None
