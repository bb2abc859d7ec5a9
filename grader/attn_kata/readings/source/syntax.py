"""Reads the structure of a source from its syntax tree. Nothing of the source runs."""

from __future__ import annotations

import ast
import difflib
import io
import re
import textwrap
import tokenize
from dataclasses import replace

from attn_kata.protocol.usual_names import USUAL_NAMES
from attn_kata.readings.source import configs, held_weights, reached, top_level, vocabulary
from attn_kata.readings.source.structure import Definition, Parameter, Structure
from attn_kata.sources import FILE_ITSELF

MOST_BYTES = 256 << 10  # parsing more takes seconds
_CONFIGS = re.compile(r"^(?:configs?|cfg|args|conf|opt|hparams|hps|params|hp|c|cf|model_args|model_config|opts)$")
_NEARLY_INIT = re.compile(r"_*(?:init|int|inti|intit|initi)_*")
_LAYERS = ("Linear", "Parameter", "Conv1d", "Conv1D", "Dropout")
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
    source = held_weights.with_modules(source)
    try:
        tree = ast.parse(source)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        lines = source.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
        return Structure()
    statements = list(top_level.statements(tree.body))
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
        for name, value in top_level.parts(target, node.value)
        if isinstance(name, ast.Name) and top_level.may_be_number(value)
    }
    unset = top_level.unset(source)
    imports = top_level.imports(tree)
    assumed = () if imports else tuple(sorted(top_level.unset(source, top=True) & USUAL_NAMES.keys()))
    never_set = top_level.never_set(tree, unset) if imports and "*" not in imports else set()
    elsewhere = unset - set(assumed) - top_level.meant_of_self(tree) - never_set  # in another cell, say
    sizes = frozenset(assigned | elsewhere | top_level.imported_sizes(tree) | top_level.set_by_functions(tree))
    also = top_level.aliases(statements, found)
    bases = {name: {top_level.last_part(base) for base in node.bases} for name, node in classes.items()}
    also |= {name: "Linear" for name, of in bases.items() if name == "Conv1D" and "Linear" in of}
    modules = top_level.modules(statements)
    found = {name: _with_aliases(_with_members(one, modules), also) for name, one in found.items()}
    begins = next((at for at, line in enumerate(lines, 1) if line == FILE_ITSELF), 0)
    every = tuple(found.values())
    return Structure(
        definitions=every,
        globals=sizes,
        computed=top_level.computed(statements),
        unset=frozenset(unset),
        never_set=frozenset(never_set),
        imports=imports,
        makers=top_level.makers(statements),
        assumed=assumed,
        begins=begins,
    )


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
    config = config or next(
        (one.name for one in build if init is not None and configs.is_asked_for_sizes(one.name, init)), ""
    )
    names = [name for one in family for name in configs.asked_of(one, config)] if config else []
    parts = {name for one in family for name in configs.parts_asked(one, config)} if config else set()
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
        global_configs=configs.global_configs(every),
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


def _attributes(node: ast.ClassDef) -> list[tuple[str, str]]:
    """The attributes that the methods of a class set, with the function that makes each, in order.

    Of a list of layers it is the layer; the parts of a Sequential follow, as `to_out.0` and `to_out.1`.
    """
    found = []
    for part in ast.walk(node):
        if not isinstance(part, (ast.Assign, ast.AnnAssign)) or part.value is None:
            continue
        targets = part.targets if isinstance(part, ast.Assign) else [part.target]
        pairs = [pair for each in targets for pair in top_level.parts(each, part.value)]
        for place, (target, value) in enumerate(pairs):
            if not (
                isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
            ):
                continue
            at = part.lineno, part.col_offset, place
            ways = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]  # not what decides
            calls = [call for way in ways for call in ast.walk(way) if isinstance(call, ast.Call)]
            makers = [top_level.last_part(call.func) for call in calls]
            known = [maker for maker in makers if maker in _LAYERS] + [
                maker for maker in makers if maker not in _CONTAINERS
            ]
            if makers:
                found.append((*at, target.attr, (known or makers)[0]))
            for call in calls:
                if top_level.last_part(call.func) == "Sequential":
                    inside = [top_level.last_part(one.func) for one in call.args if isinstance(one, ast.Call)]
                    found += [(*at, f"{target.attr}.{number}", maker) for number, maker in enumerate(inside)]
    every = [(name, made) for *_, name, made in sorted(found)]
    # What a later method makes of a layer, as prune_conv1d_layer(self.c_attn), is one of its kind.
    layers = {name for name, made in every if made in _LAYERS}
    return [(name, made) for name, made in every if name not in layers or made in _LAYERS]


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
