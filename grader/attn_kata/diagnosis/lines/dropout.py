"""The line of a mistake with dropout."""

from __future__ import annotations

import ast
import re

from attn_kata.diagnosis.lines.masks import goes_nowhere
from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.syntax import callee, keyword, line, number, on_self, only_line, position

_RANDOM = (
    "bernoulli",
    "bernoulli_",
    "alpha_dropout",
    "feature_dropout",
    "native_dropout",
    "dropout_",
    "rand",
    "rand_like",
)


def _applied(program: Program) -> list[ast.Call]:
    """The live calls that drop something. What a module does when it is imported, as a demo's draw of inputs, is none."""
    found = []
    for call in program.calls():
        if program.function(call) is None:
            continue
        name = callee(call)
        by_layer = _is_dropout(program, call.func) or (on_self(call.func) and "drop" in name)
        if by_layer or (name == "dropout" and not on_self(call.func)) or name in _RANDOM:
            found.append(call)
    return found


def _is_dropout(program: Program, node: ast.expr) -> bool:
    value = program.value(node)
    return isinstance(value, ast.Call) and callee(value).startswith("Dropout")


def applied(program: Program) -> int | None:
    """The line of the one application of dropout."""
    return only_line(_applied(program))


def by_a_number(program: Program) -> list[ast.Call]:
    """The live dropouts, functional or a layer that is made, whose probability is a number, as 0.1, or torch's own."""
    found = []
    for call in program.calls():
        if callee(call) in ("Dropout", "dropout") and not on_self(call.func):
            place = 0 if callee(call) == "Dropout" else 1
            given = keyword(call, "p") or (call.args[place] if len(call.args) > place else None)
            if given is None or number(given) not in (None, 0):
                found.append(call)
    return found


def fixed(program: Program) -> int | None:
    """The line of the one dropout whose probability is a number."""
    return only_line(by_a_number(program))


def further(program: Program) -> list[ast.Call]:
    """The applications of dropout after the first one, in the order of the lines. An unused result does not count."""
    calls = sorted(_applied(program), key=position)
    return [call for call in calls if not goes_nowhere(program, program.parents[call])][1:]


def last(program: Program) -> int | None:
    """The line of the second of two applications of dropout."""
    return only_line(further(program))


def drawn_once(program: Program) -> int | None:
    """The line of the one fixed seed, or of the one draw."""
    return only_line([call for call in program.calls() if callee(call) == "manual_seed"] or _applied(program))


def ready_made_without_a_mode(program: Program) -> list[ast.Call]:
    """The calls of torch's ready-made attention that drop weights in eval() too: `dropout_p=self.p` or `dropout_p=0.1`."""
    found = []
    for call in program.calls():
        rate = keyword(call, "dropout_p") if callee(call) == "scaled_dot_product_attention" else None
        around = program.function(call)
        if rate is None or around is None or not ((number(rate) or 0) > 0 or ast.unparse(rate).startswith("self.")):
            continue
        if not re.search(r"\btraining\b|\.eval\(", ast.unparse(program.owner(call) or around)):
            found.append(call)
    return found


def functional_without_a_mode(program: Program) -> list[ast.Call]:
    """The calls of torch's functional dropout that drop in eval() too: F.dropout(x, p), or with training=True.

    Not where the function takes the rate, as torch's own attention does, and no caller gives it one in every mode.
    """
    found = []
    for call in program.calls():
        around, rate = program.function(call), keyword(call, "p") or (call.args[1] if len(call.args) > 1 else None)
        if around is None or not _in_every_mode(call) or (rate is not None and number(rate) == 0):
            continue
        takes_rate = isinstance(rate, ast.Name) and rate.id in {
            one.arg for one in ast.walk(around.args) if isinstance(one, ast.arg)
        }
        callers = [each for each in program.calls() if callee(each) == around.name] if takes_rate else []
        asks = [program.owner(each) or program.function(each) for each in callers] if takes_rate else [around]
        if asks and not any(one is None or _asks_for_mode(one) for one in asks):
            found.append(call)
    return found


def _in_every_mode(call: ast.Call) -> bool:
    """Whether a call is one of torch's functional dropouts, and drops in every mode."""
    if (
        callee(call) != "dropout"
        or not isinstance(call.func, ast.Attribute)
        or any(one.arg is None for one in call.keywords)
    ):
        return False
    whose = ast.unparse(call.func.value)
    mode = keyword(call, "training") or keyword(call, "train") or _third(call)
    always = isinstance(mode, ast.Constant) and mode.value is True
    return always if whose == "torch" else whose.rpartition(".")[2] in _FUNCTIONAL and (mode is None or always)


def _asks_for_mode(node: ast.AST) -> bool:
    """Whether code asks in which mode it is, or goes to eval()."""
    return re.search(r"\btraining\b|\.eval\(", re.sub(r"\btraining=True\b", "", ast.unparse(node))) is not None


def made_when_called(program: Program) -> list[ast.Call]:
    """The dropouts that a call makes anew and applies, as nn.Dropout(p)(x): a new module is in train() mode."""
    found = []
    for call in program.calls():
        around, parent = program.function(call), program.parents.get(call)
        if callee(call) != "Dropout" or around is None or getattr(around, "name", "__init__") == "__init__":
            continue
        rate = call.args[0] if call.args else keyword(call, "p")
        names = [one.id for one in getattr(parent, "targets", ()) if isinstance(one, ast.Name)]
        called = [ast.unparse(one.func) for one in ast.walk(around) if isinstance(one, ast.Call)]
        applied = (isinstance(parent, ast.Call) and parent.func is call) or any(name in called for name in names)
        told = re.search(r"\btraining\b|\.(?:eval|train)\(", ast.unparse(around)) is not None
        if applied and not told and not (rate is not None and number(rate) == 0):
            found.append(call)
    return found


_FUNCTIONAL = ("F", "functional")


def always(program: Program) -> int | None:
    """The line of the one functional dropout without the mode (`training`)."""
    calls = [call for call in _applied(program) if not on_self(call.func)]
    told = [call for call in calls if isinstance(keyword(call, "training") or _third(call), ast.Attribute | ast.Name)]
    made = [
        call
        for call in program.calls()
        if callee(call) == "Dropout" and getattr(program.function(call), "name", "__init__") != "__init__"
    ]
    found = [call for call in calls if call not in told] + made
    return only_line(found) if not told else None


def _third(call: ast.Call) -> ast.expr | None:
    return call.args[2] if callee(call) == "dropout" and len(call.args) > 2 else None


def never(program: Program) -> int | None:
    """The line of the dropout with an unused result, or the line that makes the one unused layer."""
    unused = forgotten(program)
    if unused:
        return line(unused[0])
    if _applied(program):
        return None
    return only_line([call for call in program.calls() if callee(call).startswith("Dropout")])


def forgotten(program: Program) -> list[ast.Call]:
    """The live calls of something that drops, also by its name alone, whose result nobody uses."""
    named = [call for call in program.calls() if _DROPS.fullmatch(callee(call))]
    random = [call for call in _applied(program) if callee(call) in _RANDOM]
    called = [call for call in (*named, *random) if call in program.parents]
    return [call for call in called if goes_nowhere(program, program.parents[call]) and not _is_in_place(program, call)]


# Not set_dropout, which drops nothing, nor dropout_, which changes what it is given.
_DROPS = re.compile(r"(?!_*(?:set|reset|init|make|build|get|update|enable|disable)_)\w*drop\w*(?<!_)")


def _is_in_place(program: Program, call: ast.Call) -> bool:
    """Whether what is dropped changes in its place: F.dropout(x, inplace=True), or a layer that is made so."""
    made = program.value(call.func)
    given = [keyword(one, "inplace") for one in (call, made) if isinstance(one, ast.Call)]
    return any(isinstance(one, ast.Constant) and one.value is True for one in given)


def renormalised(program: Program) -> int | None:
    """The line of the one division by a sum after the dropout."""
    drops = _applied(program)
    found = []
    for node in program.nodes:
        below = None
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            below = node.right if isinstance(node, ast.BinOp) else node.value
        elif isinstance(node, ast.Call) and callee(node) == "normalize":
            found.append(node)
        made = program.resolved(below) if below is not None else None
        if made is not None and any(isinstance(part, ast.Call) and callee(part) == "sum" for part in ast.walk(made)):
            found.append(node)  # type: ignore[arg-type]
    after = [node for node in found if drops and position(node) > position(drops[0])]
    return only_line(after) if len(after) == 1 else None
