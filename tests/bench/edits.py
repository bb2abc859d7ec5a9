"""How many edits in one place of right attempts are given a name: `python -m tests.bench.edits [EACH] [KATA ...]`.

EACH (40) edits of every kata are drawn, half of them from the reference and `plain`, and are graded in one process. They are
the slips of a quick hand: another dimension, a lost transpose, a name for another one, a lost line. Those that fail without a
name are printed. Most of those that pass change nothing that counts.
"""

from __future__ import annotations

import ast
import copy
import difflib
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from attn_kata import catalog
from attn_kata.authoring.workbench import Workbench

SEED = 7
_ALIKE = (  # names of which one is taken for another
    *(("q", "k", "v"), ("query", "key", "value"), ("queries", "keys", "values"), ("q_proj", "k_proj", "v_proj")),
    *(("num_heads", "head_dim", "embed_dim"), ("H", "D", "E"), ("B", "T", "E"), ("Tq", "Tk"), ("num_heads", "num_kv_heads")),
    *(("scores", "weights"), ("sin", "cos"), ("x", "context"), ("norm1", "norm2")),
)  # fmt: skip
_WITH_DIMENSIONS = frozenset(
    (
        *("transpose", "permute", "softmax", "sum", "mean", "cat", "stack", "unsqueeze", "chunk", "split", "size"),
        *("amax", "flatten", "unflatten", "repeat_interleave"),
    )
)
_DIMENSIONS = {-1: (-2, 1, 0), -2: (-1, 1, -3), 0: (1, -1), 1: (2, 0, -1), 2: (1, 3, -1), 3: (2, 1)}
_LEFT_OUT = frozenset(
    (
        *("transpose", "permute", "contiguous", "unsqueeze", "repeat_interleave"),
        *("masked_fill", "softmax", "sqrt", "exp", "tanh"),
    )
)
_LIBRARIES = ("torch", "F", "math", "nn", "functional")
_OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.Mult: (ast.Div,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.NotEq: (ast.Eq,),
}


@dataclass(frozen=True, kw_only=True)
class Edit:
    """An attempt with an edit in one place, and the lines that differ."""

    file: str
    text: str
    lines: str


def edits(file: str, source: str) -> Iterator[Edit]:
    """Every edit of a source, once."""
    before = ast.unparse(ast.parse(source))
    seen = {before}
    for number, node in enumerate(ast.walk(ast.parse(source))):
        for which in range(len([*_instead(node, _names(source))])):
            tree = ast.parse(source)
            here = [*ast.walk(tree)][number]
            instead = [*_instead(here, _names(source))][which]
            text = ast.unparse(ast.fix_missing_locations(_Replaced(here, instead).visit(tree)))
            if text not in seen:
                seen.add(text)
                differ = difflib.unified_diff(before.splitlines(), text.splitlines(), n=0, lineterm="")
                lines = [line for line in differ if line[:1] in "+-" and line[:3] not in ("+++", "---")]
                yield Edit(file=file, text=text, lines="\n".join(lines))


class _Replaced(ast.NodeTransformer):
    def __init__(self, node: ast.AST, instead: ast.AST) -> None:
        self._node, self._instead = node, instead

    def visit(self, node: ast.AST) -> ast.AST:
        return self._instead if node is self._node else self.generic_visit(node)


def _names(source: str) -> set[str]:
    nodes = [*ast.walk(ast.parse(source))]
    return {
        getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", "") or "" for node in nodes
    }


def _instead(node: ast.AST, names: set[str]) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    if isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.BinOp):
        yield node.left
        for operator in _OPERATORS.get(type(node.op), ()):
            yield ast.BinOp(node.left, operator(), node.right)
        if isinstance(node.op, ast.MatMult):
            yield ast.BinOp(node.right, node.op, node.left)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
        yield node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for comparison in _COMPARISONS.get(type(node.ops[0]), ()):
            yield ast.Compare(node.left, [comparison()], node.comparators)
    elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        name = node.id if isinstance(node, ast.Name) else node.attr
        others = {one for alike in _ALIKE if name in alike for one in alike} - {name}
        for other in sorted(others & names):
            yield (
                ast.Name(other, node.ctx) if isinstance(node, ast.Name) else ast.Attribute(node.value, other, node.ctx)
            )
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.If):
        yield ast.Pass()


def _of_call(node: ast.Call) -> Iterator[ast.AST]:
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    of_library = owner is None or (isinstance(owner, ast.Name) and owner.id in _LIBRARIES)
    if name in _LEFT_OUT and (node.args or not of_library):
        yield node.args[0] if of_library or owner is None else owner
    places = [*range(len(node.args)), *(one.arg for one in node.keywords)]
    for place in places if name in _WITH_DIMENSIONS else ():
        for other in _DIMENSIONS.get(_number(_argument(node, place)), ()):
            yield _with(node, place, ast.Constant(other))
    if name == "masked_fill" and len(node.args) > 1:
        yield _with(node, 0, ast.UnaryOp(ast.Invert(), node.args[0]))
        yield _with(node, 1, ast.Constant(0.0))
    if name in ("view", "reshape", "transpose", "permute"):
        for place in range(len(node.args) - 1):
            yield _with(_with(node, place, node.args[place + 1]), place + 1, node.args[place])
    if name in ("tril", "triu") and isinstance(node.func, ast.Attribute):
        other_half = ast.Attribute(node.func.value, "triu" if name == "tril" else "tril", ast.Load())
        yield ast.Call(other_half, node.args, node.keywords)


def _argument(node: ast.Call, place: int | str | None) -> ast.expr:
    if isinstance(place, int):
        return node.args[place]
    return next(one.value for one in node.keywords if one.arg == place)


def _with(node: ast.Call, place: int | str | None, value: ast.expr) -> ast.Call:
    other = copy.copy(node)
    if isinstance(place, int):
        other.args = [value if number == place else one for number, one in enumerate(node.args)]
    else:
        other.keywords = [ast.keyword(one.arg, value) if one.arg == place else one for one in node.keywords]
    return other


def _number(node: ast.expr) -> int:
    """The whole number that a node is; a large one for anything else."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return sys.maxsize
    return value if isinstance(value, int) and not isinstance(value, bool) else sys.maxsize


def drawn(kata: catalog.Kata, each: int, draw: random.Random) -> list[Edit]:
    """So many edits of a kata's right attempts, half of them of the reference and of `plain`."""
    plain = [kata.solution, kata.folder / "right" / "plain.py"]
    others = sorted({*(kata.folder / "right").glob("*.py")} - {*plain})
    found = []
    for files, many in ((plain, each - each // 2), (others, each // 2)):
        every = [edit for file in files for edit in edits(file.stem, file.read_text(encoding="utf-8"))]
        found += draw.sample(every, min(many, len(every)))
    return found


def main(arguments: list[str]) -> None:
    """Grade the edits, and print the figures of each kata and of all."""
    each = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else 40
    draw = random.Random(SEED)
    total: Counter[str] = Counter()
    with Workbench() as bench:
        for kata in [catalog.find(slug) for slug in arguments] or catalog.katas():
            counts: Counter[str] = Counter()
            for edit in drawn(kata, each, draw):
                report = bench.grade(kata.slug, edit.text.encode(), attempt="attempt.py")
                told = "ended" if report is None else _told(report.passed, bool(report.diagnosis))
                counts[told] += 1
                if told == "without a name":
                    print(f"{kata.slug}, {edit.file}\n{edit.lines}\n")
            print(f"{kata.slug}: {_figures(counts)}\n", flush=True)
            total += counts
    print(f"all: {_figures(total)}")


def _told(passed: bool, named: bool) -> str:
    return "passed" if passed else "named" if named else "without a name"


def _figures(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
