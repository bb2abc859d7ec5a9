"""The line of a mistake in a tensor's layout, dtype, device or gradient, or of a write into the inputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from attn_kata.diagnosis.lines.program import Program
from attn_kata.diagnosis.lines.syntax import (
    callee,
    is_method,
    is_module,
    keyword,
    line,
    number,
    on_self,
    only_line,
    other_arguments,
    subject,
)
from attn_kata.diagnosis.lines.values import is_mask, is_number, is_parameter


def called(*names: str) -> Callable[[Program], int | None]:
    """A finder of the one live call of one of these names."""

    def find(program: Program) -> int | None:
        return only_line([call for call in program.calls() if callee(call) in names])

    return find


_ACTIVATIONS = ("relu", "tanh", "sigmoid", "gelu", "silu", "swish", "elu", "leakyrelu", "softplus")


def activations(program: Program) -> dict[ast.AST, str]:
    """The live mentions of an activation, a call or the name of a function or class, and which one each is."""
    found: dict[ast.AST, str] = {}
    for node in program.each(ast.Attribute, ast.Name):
        said = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        name = said.replace("_", "").lower()
        if name in _ACTIVATIONS:
            found[node] = name
    return found


def activation(program: Program) -> int | None:
    """The line of the one live mention of an activation."""
    return only_line(list(activations(program)))


def batch_as_time(program: Program) -> int | None:
    """The first swap of the first two dimensions, in a function with at most two."""
    found = [call for call in program.calls() if callee(call) in ("transpose", "swapaxes") and _exchanges(call)]
    return line(found[0]) if found and len(found) <= 2 and len({program.scope(one) for one in found}) == 1 else None


def _exchanges(call: ast.Call) -> bool:
    return sorted(number(one) or 0 for one in other_arguments(call)) == [0, 1]


def transposed_by_T(program: Program) -> int | None:
    """The line of the one .T."""
    return only_line(
        [node for node in program.each(ast.Attribute) if isinstance(node, ast.Attribute) and node.attr == "T"]
    )


def squeeze(program: Program) -> int | None:
    """The line of the one squeeze without a dimension."""
    return only_line(squeezes(program))


def squeezes(program: Program) -> list[ast.Call]:
    """The live squeezes without a dimension."""
    return [
        call
        for call in program.calls()
        if callee(call) in ("squeeze", "squeeze_") and not other_arguments(call) and not call.keywords
    ]


# -------------------------------------------------------------------------------------------------------- numbers

_MAKERS = {
    "zeros",
    "ones",
    "full",
    "empty",
    "tensor",
    "eye",
    "linspace",
    "rand",
    "randn",
    "arange",
    "tril_indices",
    "triu_indices",
}


def forced_float32(program: Program) -> int | None:
    """The line of the one conversion to float32 of something other than a mask."""
    found: list[ast.AST] = []
    for node in program.nodes:
        if isinstance(node, ast.Call) and callee(node) == "float" and is_method(node):
            if not is_mask(program, subject(node)):
                found.append(node)
        elif (
            isinstance(node, ast.Attribute)
            and node.attr in ("float32", "float", "FloatTensor")
            and is_module(node.value)
        ):
            around = program.parents.get(node)
            compares = isinstance(around, ast.Compare)
            if not compares and not isinstance(around, ast.Attribute):
                found.append(node)
    return only_line(found)


def default_dtype(program: Program) -> int | None:
    """The line of the one floating tensor made without a dtype."""
    found = []
    for call in _made(program):
        integers = callee(call) in ("arange", "tril_indices", "triu_indices")
        if keyword(call, "dtype") is None and not integers and not is_mask(program, program.parents.get(call)):  # type: ignore[arg-type]
            found.append(call)
    return only_line(found)


def default_device(program: Program) -> int | None:
    """The line of the one tensor made without a device, or on the CPU by name."""
    return only_line([call for call in _made(program) if _on_default(keyword(call, "device"))])


def _on_default(device: ast.expr | None) -> bool:
    if isinstance(device, ast.Call) and callee(device) == "device" and device.args:  # torch.device("cpu")
        device = device.args[0]
    return device is None or (isinstance(device, ast.Constant) and device.value == "cpu")


def _made(program: Program) -> list[ast.Call]:
    """The torch factory calls in live code of a call, without those that are moved or converted at once."""
    found = []
    for call in program.calls():
        by_torch = (
            isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "torch"
        )
        if callee(call) not in _MAKERS or not by_torch or getattr(program.function(call), "name", "") == "__init__":
            continue
        outer = program.parents.get(call)
        if not (isinstance(outer, ast.Attribute) and outer.attr in ("to", "type_as", "cuda")):
            found.append(call)
    return found


def detached(program: Program) -> int | None:
    """The line of the one operation that leaves the graph."""
    return only_line(cuts(program))


_LEAVE = ("detach", "detach_", "item", "tolist", "numpy", "from_numpy")
_REBUILD = ("tensor", "as_tensor", "asarray", "array", "Tensor", "FloatTensor", "DoubleTensor")
_SWITCHES = ("no_grad", "inference_mode")


def cuts(program: Program) -> list[ast.AST]:
    """The live operations that leave the graph, except on a maximum, a size or a mask, which need no gradient."""
    found: list[ast.AST] = []
    for node in program.nodes:
        if isinstance(node, ast.Call):
            if _leaves(program, node):
                found.append(node)
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            if not on_self(node) and not is_module(node.value) and not _harmless(program, node.value):
                found.append(node)
        elif isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if name in _SWITCHES and isinstance(getattr(node, "ctx", None), ast.Load):
                found.append(node)
    return found


def _leaves(program: Program, call: ast.Call) -> bool:
    name, inner = callee(call), subject(call)
    if name in ("requires_grad_", "set_grad_enabled"):
        given = call.args[0] if call.args else keyword(call, "requires_grad", "mode")
        return isinstance(given, ast.Constant) and given.value is False
    if name in _LEAVE:
        again = isinstance(inner, ast.Call) and callee(inner) in ("detach", "cpu")  # the same cut, already found
        return not _harmless(program, inner) and not again
    in_init = getattr(program.function(call), "name", "") == "__init__"
    if name in _REBUILD and not is_method(call) and not in_init and inner is not None:
        parts = inner.elts if isinstance(inner, ast.List | ast.Tuple) else [inner]
        return not all(is_number(program, part) for part in parts) and not _harmless(program, inner)
    return False


_KEEPING = ("values", "detach", "clone", "to", "type_as", "float", "double", "unsqueeze", "squeeze", "view", "reshape")


def _harmless(program: Program, inner: ast.expr | None) -> bool:
    """Whether an expression is itself a maximum, a size or a mask, not only contains one."""
    if inner is None:
        return False
    node = program.resolved(inner)
    for _ in range(6):
        if is_mask(program, node) or is_number(program, node):
            return True
        if isinstance(node, ast.Call) and is_method(node) and callee(node) in _KEEPING:
            node = program.resolved(subject(node) or node)
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in _KEEPING):
            node = program.resolved(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr == "shape"
    return isinstance(node, ast.Call) and callee(node) in ("max", "amax", "argmax", "size", "arange")


def modified(program: Program) -> int | None:
    """The line of the one write into an argument."""
    found = [node for node, written in _writes(program) if _is_input(program, written)]
    return only_line(found)


def concat_scores_without_tanh(program: Program) -> list[ast.AST]:
    """Where a linear layer scores a query and a key side by side, in a class that has a softmax and no activation.

    A score that is linear in both adds the same number to every key, so the weights do not depend on the query.
    """
    found: list[ast.AST] = []
    for call in program.calls():
        owner = program.owner(call)
        if owner is None or not on_self(call.func) or len(call.args) != 1:
            continue
        joined, text = _laid_out(program, call.args[0]), ast.unparse(owner)
        if re.search(rf"self\.{callee(call)} = (?:\w+\.)*Linear\(", text) is None:
            continue
        if not isinstance(joined, ast.Call) or callee(joined) not in ("cat", "concat") or not joined.args:
            continue
        parts = joined.args[0].elts if isinstance(joined.args[0], ast.Tuple | ast.List) else []
        names = [ast.unparse(_whole(one)).rpartition(".")[2] for one in parts]
        both = len(names) == 2 and any(map(_A_QUERY.fullmatch, names)) and any(map(_A_KEY.fullmatch, names))
        if both and "softmax" in text.lower() and _ACTIVATED.search(text) is None:
            found.append(call)
    return found


def _laid_out(program: Program, node: ast.expr) -> ast.expr:
    """The expression behind a name, and what it lays out anew: `torch.cat(…)` of `torch.cat(…).view(-1, size)`."""
    node = program.resolved(node)
    while (
        isinstance(node, ast.Call) and is_method(node) and callee(node) in ("view", "reshape", "flatten", "contiguous")
    ):
        node = program.resolved(subject(node) or node.func)
    return node


def _whole(node: ast.expr) -> ast.expr:
    """What a tensor is cut from or expanded from: `hidden` of `hidden[-1].unsqueeze(1)`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return node


_A_QUERY = re.compile(
    r"(?i)(?:\w*_)?(?:hidden|hidden_states?|query|queries|decoder_(?:hidden|state|output)|h_t|s_t)(?:_\w+)?"
)
_A_KEY = re.compile(
    r"(?i)(?:\w{1,5}_)?(?:enc(?:oder)?_(?:outputs?|outs?|hiddens?|states?)|keys?|annotations|h_s)(?:_\w+)?"
)
_ACTIVATED = re.compile(r"(?i)tanh|relu|gelu|\belu\b|sigmoid|silu|swish")


def softmax_changed_in_place(program: Program) -> list[ast.AST]:
    """Where the result of a softmax is changed in place, so that its backward pass raises: weights *= mask."""
    found: list[ast.AST] = []
    for node in program.nodes:
        changed: ast.expr | None = None
        if isinstance(node, ast.AugAssign):
            changed = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _WRITES.fullmatch(node.func.attr):
            changed = node.func.value
        if not isinstance(changed, ast.Name):
            continue
        made = program.value(changed)
        if isinstance(made, ast.Call) and callee(made) in ("softmax", "Softmax") and program.function(node) is not None:
            found.append(node)
    return found


_WRITES = re.compile(r"(?:masked_fill|mul|div|add|sub|fill|zero|clamp|dropout)_")


def in_place(program: Program) -> int | None:
    """The line of the one write into a tensor, or of the one dropout that writes into what it gets."""
    found = [node for node, written in _writes(program) if not is_mask(program, written)]
    drops = (call for call in program.calls() if callee(call) in ("Dropout", "dropout"))
    found += [call for call in drops if getattr(keyword(call, "inplace"), "value", False) is True]
    return only_line(found)


def _writes(program: Program) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Every write into a tensor, with what it writes into."""
    for node in program.nodes:
        written: ast.expr | None = None
        if (
            isinstance(node, ast.Call)
            and callee(node).endswith("_")
            and not callee(node).startswith("_")
            and is_method(node)
        ):
            written = subject(node)
        elif isinstance(node, ast.Call) and keyword(node, "out") is not None:
            written = keyword(node, "out")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            written = node.targets[0].value
        elif isinstance(node, ast.AugAssign):
            written = node.target.value if isinstance(node.target, ast.Subscript) else node.target
        if written is not None and not is_number(program, written):
            yield node, written


_VIEWS = {
    "view",
    "transpose",
    "permute",
    "unsqueeze",
    "squeeze",
    "expand",
    "narrow",
    "select",
    "t",
    "flatten",
    "unflatten",
    "reshape",
    "contiguous",
    "movedim",
    "swapaxes",
    "to",
    "float",
    "double",
    "view_as",
}


def _is_input(program: Program, node: ast.expr) -> bool:
    """Whether an expression is an argument, or a view of one."""
    for _ in range(12):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and is_method(node) and (callee(node) in _VIEWS or callee(node).endswith("_")):
            node = subject(node) or node.func
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT", "data"):
            node = node.value
        elif isinstance(node, ast.Name):
            if is_parameter(program, node):
                function = program.function(node)
                return function is not None and not function.name.startswith("__")
            value = program.value(node)
            if value is None:
                return False
            node = value
        else:
            return False
    return False
