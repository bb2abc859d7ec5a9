"""Methods that are an attention by themselves, in a class that is more: `attention` of a decoder with embeddings and a GRU.

Such a method is read as the forward of its class, without what it does not use. The lines of the source stay where they are.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable

from attn_kata.readings.source import top_level

_OTHER_WORK = re.compile(
    r"__|forward$|backward|^_?(?:my_)?(?:forward|test|train|validat|eval|infer|predict|generate|sample|decode|encode|beam|greedy"
    r"|compute_loss|loss|step|plot|show|visuali[sz]e|call$)",
    re.IGNORECASE,
)
_SOFTMAX = re.compile(r"softmax|\.exp\(", re.IGNORECASE)
_PRODUCT = re.compile(r"matmul|bmm|einsum|baddbmm|\.mm\(|\.dot\(|sum\(|[\w)\]]\s*@\s*[\w(]")
_LEAST_INPUTS = 2
_STATIC = "staticmethod"
_CALLS = {"forward", "__call__"}


def of(source: bytes) -> list[str]:
    """The methods of the source that may be an attention, as `Decoder.attend`, in its order."""
    found = _parsed(source)
    if found is None:
        return []
    tree, lines = found
    names = []
    for node in _classes(tree):
        for method in _methods(node).values():
            text = "\n".join(lines[method.lineno - 1 : method.end_lineno])
            inputs = len(method.args.args) + len(method.args.kwonlyargs) - (not _is_static(method))
            least = 1 if "att" in method.name.lower() else _LEAST_INPUTS
            is_other = _OTHER_WORK.search(method.name) is not None or not _is_plain(method) or inputs < least
            if not is_other and _SOFTMAX.search(text) and _PRODUCT.search(text):
                names.append(f"{node.name}.{method.name}")
    return names


def alone(source: bytes, name: str) -> bytes | None:
    """The source in which the class has only this method, as its `forward`, and of its constructor what that uses.

    None where there is no such method, or it is `forward` or static in a class without one, which can be read as they are.

    >>> print(alone(b"class A:\\n  def go(self, x): pass\\n  def mix(self, q, k):\\n    return q @ k", "A.mix").decode())
    class A(__import__("torch").nn.Module):
    <BLANKLINE>
      def forward(self, q, k):
        return q @ k
    """
    class_name, _, method_name = name.partition(".")
    found = _parsed(source) if method_name else None
    if found is None:
        return None
    tree, lines = found
    node = next((one for one in _classes(tree) if one.name == class_name), None)
    method = None if node is None else _methods(node).get(method_name)
    if node is None or method is None or method_name in ("__init__", *_CALLS) or not _is_plain(method):
        return None
    if _is_static(method) and not _CALLS & _methods(node).keys():
        return None
    trimmed = _Trimmed(node, method, lines)
    text = "\n".join(trimmed.lines())
    try:
        ast.parse(text)
    except SyntaxError:  # two statements in a line, of which one is left out
        return None
    return text.encode(_encoding(source), "surrogateescape")


def taken(source: bytes, entry: str) -> tuple[bytes, str]:
    """What is graded of a source, and its definition: of `Decoder.attend` that method alone, and `Decoder`; else as given."""
    only = alone(source, entry)
    return (source, entry) if only is None else (only, entry.partition(".")[0])


def _parsed(source: bytes) -> tuple[ast.Module, list[str]] | None:
    try:
        tree = ast.parse(source)
        text = source.decode(_encoding(source), "surrogateescape")
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
        return None
    return tree, text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _encoding(source: bytes) -> str:
    return tokenize.detect_encoding(io.BytesIO(source).readline)[0]


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [one for one in top_level.statements(tree.body) if isinstance(one, ast.ClassDef)]


def _methods(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}


def _is_static(method: ast.FunctionDef) -> bool:
    return any(ast.unparse(one) == _STATIC for one in method.decorator_list)


def _is_plain(method: ast.FunctionDef) -> bool:
    """Whether it can be the forward of its class: no property, no class method, and it does not ask for `forward`."""
    by = {ast.unparse(one).rpartition(".")[2] for one in method.decorator_list}
    of_class = by & {"property", "classmethod", "setter", "cached_property"}
    return not of_class and (_is_static(method) or bool(method.args.args)) and "forward" not in _asked(method)


def _asked(node: ast.AST) -> set[str]:
    """The names after a dot in it, of whatever they are asked."""
    return {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def _set_by(statement: ast.AST, me: str) -> set[str]:
    """The attributes and local names that a statement sets, a buffer among them."""
    names: set[str] = set()
    for part in ast.walk(statement):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            names.add(part.id)
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and ast.unparse(part.value) == me:
            names.add(f".{part.attr}")
        if isinstance(part, ast.Call) and ast.unparse(part.func).startswith(f"{me}.register_"):
            names |= {
                f".{one.value}" for one in part.args[:1] if isinstance(one, ast.Constant) and isinstance(one.value, str)
            }
    return names


def _read_by(node: ast.AST) -> set[str]:
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    return names | {f".{name}" for name in _asked(node)}


class _Trimmed:
    """A class with one method alone."""

    def __init__(self, node: ast.ClassDef, method: ast.FunctionDef, lines: list[str]) -> None:
        self._node, self._method, self._lines = node, method, list(lines)
        self._methods = _methods(node)
        self._init = self._methods.get("__init__")
        self._used = [method]  # the method and those of the class that it uses
        self._kept: list[ast.stmt] = []  # of the constructor
        self._follow()

    def _follow(self) -> None:
        """Find the methods that are used, and the statements of the constructor that set what they read."""
        count = -1
        while count != len(self._used) + len(self._kept):
            count = len(self._used) + len(self._kept)
            for node in (*self._used, *self._kept):
                asked = [self._methods[name] for name in sorted(_asked(node)) if name in self._methods]
                self._used += [one for one in asked if one not in self._used and one is not self._init]
            reads = {name for node in (*self._used, *self._kept) for name in _read_by(node)}
            statements = self._init.body if self._init is not None else []
            self._kept = [one for one in statements if self._is_super(one) or self._sets(one) & reads]

    @staticmethod
    def _is_super(statement: ast.stmt) -> bool:
        return isinstance(statement, ast.Expr) and "__init__(" in ast.unparse(statement)

    def _sets(self, statement: ast.stmt) -> set[str]:
        """What a statement of the constructor sets, also by the methods that it calls."""
        me = self._init.args.args[0].arg if self._init is not None and self._init.args.args else "self"
        names = _set_by(statement, me)
        for name in _asked(statement) & self._methods.keys():
            names |= {one for one in _set_by(self._methods[name], "self") if one.startswith(".")}
        return names

    def lines(self) -> list[str]:
        """The lines of the source, in which all else of the class is blank."""
        for method in self._methods.values():
            if method not in self._used and not (method is self._init and self._kept):
                self._blank(method, method.decorator_list)
        if self._init is not None and self._kept:
            for statement in self._init.body:
                if statement not in self._kept:
                    self._blank(statement)
            self._without_parameters(self._init)
        self._rename()
        if all(ast.unparse(one) == "object" for one in self._node.bases):
            self._make_module()
        return self._lines

    def _blank(self, node: ast.stmt, also: Iterable[ast.expr] = ()) -> None:
        first = min([node.lineno, *(one.lineno for one in also)])
        for at in range(first - 1, node.end_lineno or node.lineno):
            self._lines[at] = ""

    def _without_parameters(self, init: ast.FunctionDef) -> None:
        """Leave out the parameters of the constructor that no kept statement reads."""
        reads = {name for one in self._kept for name in _read_by(one)}
        arguments = init.args
        plain = [*arguments.posonlyargs, *arguments.args]
        after = len(plain) - len(arguments.defaults)
        said = []
        for place, one in enumerate(plain):
            if place and one.arg not in reads:
                continue
            default = f"={ast.unparse(arguments.defaults[place - after])}" if place >= after else ""
            said.append(ast.unparse(one) + default)
        more = [one for one in arguments.kwonlyargs if one.arg in reads]
        if arguments.vararg is not None and arguments.vararg.arg in reads:
            said.append(f"*{arguments.vararg.arg}")
        elif more:
            said.append("*")
        for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if one in more:
                said.append(ast.unparse(one) + (f"={ast.unparse(value)}" if value is not None else ""))
        if arguments.kwarg is not None and arguments.kwarg.arg in reads:
            said.append(f"**{arguments.kwarg.arg}")
        if init.body[0].lineno == init.lineno:
            return  # all in one line
        indent = self._lines[init.lineno - 1][: init.col_offset]
        self._lines[init.lineno - 1] = f"{indent}def __init__({', '.join(said)}):"
        for at in range(init.lineno, init.body[0].lineno - 1):
            self._lines[at] = ""

    def _rename(self) -> None:
        method = self._method
        at = method.lineno - 1
        header = rf"(def\s+){re.escape(method.name)}(\s*\(\s*)"
        if _is_static(method):
            for by in method.decorator_list:
                if ast.unparse(by) == _STATIC:
                    self._lines[by.lineno - 1] = ""
            self._lines[at] = re.sub(header, r"\1forward\2self, ", self._lines[at], count=1)
        else:
            self._lines[at] = re.sub(header, r"\1forward\2", self._lines[at], count=1)

    def _make_module(self) -> None:
        """Give a class without a base the one that an attempt has."""
        at = self._node.lineno - 1
        header = rf"(class\s+{re.escape(self._node.name)})\s*(?:\(\s*(?:object)?\s*\))?\s*:"
        self._lines[at] = re.sub(header, r'\1(__import__("torch").nn.Module):', self._lines[at], count=1)
        if self._init is not None and self._kept:
            first = self._kept[0]
            line = self._lines[first.lineno - 1]
            self._lines[first.lineno - 1] = f"{line[: first.col_offset]}super().__init__(); {line[first.col_offset :]}"
