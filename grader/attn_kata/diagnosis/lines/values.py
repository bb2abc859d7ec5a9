"""The kind of an expression: a plain number, a mask, a power of a size, a product of tensors."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from attn_kata.diagnosis.lines.program import Binding, Program
from attn_kata.diagnosis.lines.syntax import callee, is_method, mentions, number, on_self, other_arguments, subject

_DEPTH = 8
_SCALAR_NAMES = re.compile(
    r"(scale|scaling|temper\w*|d|dk|d_k|d_v|d_q|d_model|\w*dim\w*|\w*heads?|\w*head_size|n_?heads?|nhead|h|p|dropout\w*|eps\w*|"
    r"max_len|\w*length|num_\w+|n_\w+|\w+_size|size|batch|bs|[BHTDESC]|T[qk])"
)
_SIZE_ATTRIBUTES = re.compile(
    r"(in|out)_features|embedding_dim|num_embeddings|\w*dim|\w*heads|\w*head_size|\w*_size|ndim|d_k|d_v|d_model"
)
_NUMBER_FUNCTIONS = {
    "sqrt",
    "rsqrt",
    "pow",
    "float",
    "int",
    "len",
    "tensor",
    "as_tensor",
    "max",
    "min",
    "round",
    "abs",
    "isqrt",
    "numel",
}
_PASSES_NUMBER = {
    "sqrt",
    "rsqrt",
    "pow",
    "to",
    "float",
    "double",
    "type_as",
    "type",
    "item",
    "sqrt_",
    "clone",
    "detach",
    "size",
    "dim",
    "numel",
}
_MASK_NAME = re.compile(
    r"mask|keep|causal|allow|valid|(^|_)pad|tril|triu|future|ignore|visible|attend_to|is_real|real_tokens", re.I
)
_NOT_MASK_NAME = re.compile(r"masked|proj|padded|linear|dropout|fill|value|len", re.I)
_MASK_KEEPING = {
    "float",
    "bool",
    "to",
    "type",
    "int",
    "long",
    "half",
    "double",
    "type_as",
    "unsqueeze",
    "view",
    "reshape",
    "expand",
    "expand_as",
    "transpose",
    "repeat",
    "logical_not",
    "bitwise_not",
    "eq",
    "ne",
    "clone",
    "logical_and",
    "logical_or",
    "tril",
    "triu",
    "squeeze",
    "permute",
    "broadcast_to",
    "squeeze_",
    "unsqueeze_",
    "tril_",
    "triu_",
    "contiguous",
}
_MASK_MAKING = {"tril", "triu", "logical_not", "logical_and", "logical_or", "bitwise_not", "ge", "le", "gt", "lt"}


def is_number(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Whether an expression is certainly a plain number: a literal, a size, or arithmetic of these."""
    if node is None or depth > _DEPTH:
        return False
    if ("is_number", node) not in program.known:
        program.known["is_number", node] = _is_number(program, node, depth + 1)
    return program.known["is_number", node]


def _is_number(program: Program, node: ast.expr, deeper: int) -> bool:
    if number(node) is not None:
        return True
    if isinstance(node, ast.Name):
        return _name_is_number(program, node, deeper)
    if isinstance(node, ast.Attribute):
        return _attribute_is_number(program, node, deeper)
    if isinstance(node, ast.Subscript):
        return mentions_shape(node.value) and not isinstance(node.slice, ast.Slice)
    if isinstance(node, ast.BinOp):
        return is_number(program, node.left, deeper) and is_number(program, node.right, deeper)
    if isinstance(node, ast.UnaryOp):
        return is_number(program, node.operand, deeper)
    if isinstance(node, ast.IfExp):
        return is_number(program, node.body, deeper) and is_number(program, node.orelse, deeper)
    if isinstance(node, ast.Call):
        name = callee(node)
        if is_method(node) and name in ("size", "dim", "numel"):
            return name != "size" or bool(node.args)
        if is_method(node) and name in _PASSES_NUMBER:
            return is_number(program, subject(node), deeper)
        by_math = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "math"
        if name == "len" or by_math:  # math takes numbers, and gives them
            return True
        return (
            name in _NUMBER_FUNCTIONS and bool(node.args) and all(is_number(program, one, deeper) for one in node.args)
        )
    return False


def _name_is_number(program: Program, node: ast.Name, depth: int) -> bool:
    scope: ast.AST = program.scope(node)
    found = program.bindings(scope, node.id)
    while not found and scope is not program.tree:
        scope = program.scope(scope)
        found = program.bindings(scope, node.id)
    return bool(found) and all(_binding_is_number(program, one, node.id, depth) for one in found)


def _binding_is_number(program: Program, binding: Binding, name: str, depth: int) -> bool:
    if isinstance(binding.node, ast.arg):
        said = ast.unparse(binding.node.annotation) if binding.node.annotation else ""
        if "Tensor" in said:
            return False
        if re.search(r"\b(int|float)\b", said):
            return True
        function = program.function(binding.node)
        return (function is not None and function.name == "__init__") or _SCALAR_NAMES.fullmatch(name) is not None
    if binding.unpacked is not None:
        return mentions_shape(binding.unpacked)
    if isinstance(binding.node, ast.AugAssign):
        return is_number(program, binding.node.value, depth)
    return binding.value is not None and is_number(program, binding.value, depth)


def _attribute_is_number(program: Program, node: ast.Attribute, depth: int) -> bool:
    if on_self(node):
        found = program.attribute(node)
        if found:
            return all(_binding_is_number(program, one, node.attr, depth) for one in found)
    return _SIZE_ATTRIBUTES.fullmatch(node.attr) is not None


def mentions_shape(node: ast.expr) -> bool:
    """Whether an expression is `x.shape`, `x.size()`, a slice of these, or a tuple of sizes."""
    if isinstance(node, ast.Subscript):
        return mentions_shape(node.value)
    if isinstance(node, ast.Tuple):
        return all(isinstance(part, ast.Subscript | ast.Call) and mentions(part, "shape", "size") for part in node.elts)
    if isinstance(node, ast.Call):
        return callee(node) == "size" and not node.args
    return isinstance(node, ast.Attribute) and node.attr == "shape"


@dataclass(frozen=True, kw_only=True)
class Power:
    """`base ** exponent`, and the node that computes this number."""

    base: ast.expr
    exponent: float
    made: ast.AST


def power(program: Program, node: ast.expr, made: ast.AST, depth: int = 0) -> Power:
    """A number as a power of a size, following names: `self.scale` with `self.scale = d ** -0.5` is d to the -0.5.

    `made` is the node that stands for the number where it is used; the result's is where it was worked out.
    """
    deeper = depth + 1
    plain = Power(base=node, exponent=1.0, made=made)
    if depth > _DEPTH:
        return plain

    def raised(inner: ast.expr, by: float) -> Power:
        found = power(program, inner, made, deeper)
        # The node of a root is the root itself, unless the name under it is a size from its own statement.
        return Power(
            base=found.base, exponent=found.exponent * by, made=found.made if _reads_size(found.made) else made
        )

    if isinstance(node, ast.Name | ast.Attribute):
        binding = program.binding(node)
        value = program.value(node)
        if binding is None or value is None or number(value) is not None:
            return plain
        where: ast.AST = value if isinstance(binding.node, ast.arg) else binding.node
        if isinstance(value, ast.Name):
            where = made  # self.embed_dim = embed_dim computes nothing
        return power(program, value, where, deeper)
    if isinstance(node, ast.BinOp):
        exponent = number(node.right)
        if isinstance(node.op, ast.Pow) and exponent is not None:
            return raised(node.left, exponent)
        above = number(node.left)
        if isinstance(node.op, ast.Div) and above is not None and above > 0:
            return raised(node.right, -1.0)
    if isinstance(node, ast.Call):
        name, only = callee(node), subject(node)
        if only is not None and name in ("sqrt", "rsqrt", "sqrt_"):
            return raised(only, -0.5 if name == "rsqrt" else 0.5)
        exponent = number(other_arguments(node)[0]) if name == "pow" and other_arguments(node) else None
        if only is not None and exponent is not None:
            return raised(only, exponent)
        if only is not None and name in ("float", "int", "tensor", "as_tensor", "to", "double", "type_as", "item"):
            return power(program, only, made, deeper)
    return plain


def _reads_size(node: ast.AST) -> bool:
    """Whether a statement only reads one size: `d_k = q.size(-1)`."""
    if not isinstance(node, ast.Assign) or isinstance(node.targets[0], ast.Tuple):
        return False
    value = node.value
    if isinstance(value, ast.Call):
        return callee(value) == "size" and bool(value.args)
    return isinstance(value, ast.Subscript) and mentions_shape(value.value)


def is_mask(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Whether an expression is a mask, by the names and operations that people use for them."""
    if node is None or depth > _DEPTH:
        return False
    if ("is_mask", node) not in program.known:
        program.known["is_mask", node] = _is_mask(program, node, depth + 1)
    return program.known["is_mask", node]


def _is_mask(program: Program, node: ast.expr, deeper: int) -> bool:
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if _MASK_NAME.search(name) and not _NOT_MASK_NAME.search(name):
            return True
        value = program.value(node)
        return value is not None and is_mask(program, value, deeper)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert | ast.Not) and is_mask(program, node.operand, deeper)
    if isinstance(node, ast.Subscript):
        return is_mask(program, node.value, deeper)
    if isinstance(node, ast.Compare):
        return (
            is_mask(program, node.left, deeper)
            or is_range(program, node.left)
            or is_range(program, node.comparators[0])
        )
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            return is_mask(program, node.left, deeper) or is_mask(program, node.right, deeper)
        return isinstance(node.op, ast.Sub) and number(node.left) == 1 and is_mask(program, node.right, deeper)
    if isinstance(node, ast.Call):
        name = callee(node)
        if name in ("tril", "triu") or (name in _MASK_MAKING and is_mask(program, subject(node), deeper)):
            return True
        return is_method(node) and name in _MASK_KEEPING and is_mask(program, subject(node), deeper)
    return False


def is_range(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Whether an expression counts positions: an arange, shifted or unsqueezed, or the variable of a range loop."""
    if node is None or depth > _DEPTH:
        return False
    if ("is_range", node) not in program.known:
        program.known["is_range", node] = _is_range(program, node, depth + 1)
    return program.known["is_range", node]


def _is_range(program: Program, node: ast.expr, deeper: int) -> bool:
    if isinstance(node, ast.Call):
        if callee(node) == "arange":
            return True
        return is_method(node) and is_range(program, subject(node), deeper)
    if isinstance(node, ast.Subscript):
        return is_range(program, node.value, deeper)
    if isinstance(node, ast.BinOp):
        return is_range(program, node.left, deeper) or is_range(program, node.right, deeper)
    if isinstance(node, ast.Name):
        value = program.value(node)
        if value is not None:
            return is_range(program, value, deeper)
        return any(_counts(program, one.node) for one in program.bindings(program.scope(node), node.id))
    return False


def _counts(program: Program, target: ast.AST) -> bool:
    loop = program.parents.get(target)
    within = loop.iter if isinstance(loop, ast.For | ast.comprehension) else None
    return isinstance(within, ast.Call) and callee(within) == "range"


def is_transposed(node: ast.expr) -> bool:
    """Whether the last step of an expression swaps dimensions: `k.transpose(-2, -1)`, `k.mT`."""
    while True:
        if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
            return True
        if not isinstance(node, ast.Call):
            return False
        if callee(node) in ("transpose", "permute", "swapaxes", "swapdims", "movedim", "t", "rearrange"):
            return True
        inner = subject(node)
        if inner is None or callee(node) not in ("contiguous", "clone", "to", "float"):
            return False
        node = inner


def is_parameter(program: Program, node: ast.expr) -> bool:
    """Whether a name is an unchanged parameter of a function."""
    binding = program.binding(node) if isinstance(node, ast.Name) else None
    return binding is not None and isinstance(binding.node, ast.arg)


def products(program: Program) -> list[tuple[ast.AST, ast.expr, ast.expr]]:
    """The live matrix products, as (node, left, right)."""
    found: list[tuple[ast.AST, ast.expr, ast.expr]] = []
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.append((node, node.left, node.right))
        elif isinstance(node, ast.Call) and callee(node) in ("matmul", "bmm", "mm", "baddbmm"):
            left, others = subject(node), other_arguments(node)
            if left is not None and others:
                found.append((node, left, others[0]))
    return found
