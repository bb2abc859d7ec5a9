"""Functions that are given their weights, `mha(x, Wq, Wk, Wv, Wo, n_heads)`: a module that holds them is written below them.

Everything else reads a module then. The lines of the source stay where they are.
"""

from __future__ import annotations

import ast
import re

from attn_kata.readings.source import vocabulary

SUFFIX = "_module"  # of the name of the module, behind that of the function
_MAY_BE = re.compile(rb"def \w+\([^)]*\b[wW]\w*[qQ]|def \w+\([^)]*\bq\w*_?(?:w\b|weight|proj|mat)")
_WEIGHT = re.compile(
    r"[wW]_?(?:[qkvoQKVO]|query|key|value|out|output)s?|(?:[qkvo]|query|key|value|out)_?(?:w|weights?|proj|mat(?:rix)?)"
)
_BIAS = re.compile(r"b(?:ias)?_?([qkvo])")
_WEIGHS = re.compile(r"softmax|exp\(")
# No import, for a source without any gets the usual names.
_HEAD = """

_nn = __import__("torch").nn


class {name}(_nn.Module):
    def __init__(self, {sizes}):
        super().__init__()
{layers}
    def forward(self, {inputs}):
        return {function}({given})
"""


def with_modules(source: bytes) -> bytes:
    """The source, with a module below it for each function that is given the weights of q, k and v; else the same.

    >>> print(with_modules(b"def f(x, Wq, Wk, Wv):\\n    return (x @ Wq @ (x @ Wk).T).softmax(-1) @ (x @ Wv)").decode()[-111:])
        def forward(self, x):
            return f(x=x, Wq=self.Wq.weight.T, Wk=self.Wk.weight.T, Wv=self.Wv.weight.T)
    <BLANKLINE>
    """
    if _MAY_BE.search(source) is None:
        return source
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return source
    names = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    attend = [rf"\b{re.escape(node.name)}\(" for node in functions if _WEIGHS.search(ast.unparse(node))]
    weighs = re.compile("|".join([_WEIGHS.pattern, *attend]))  # or the function hands q, k and v to another one
    written = [_module(node, weighs) for node in functions if f"{node.name}{SUFFIX}" not in names]
    return source.rstrip(b"\n") + b"\n" + "".join(written).encode() if any(written) else source


def _module(function: ast.FunctionDef, weighs: re.Pattern[str]) -> str:
    """The module for a function; "" where it is not given the weights of q, k and v, or `weighs` finds no attention in it."""
    parameters = [*function.args.args, *function.args.kwonlyargs]
    after = len(function.args.args) - len(function.args.defaults)
    defaults = dict(zip([one.arg for one in function.args.args[after:]], function.args.defaults, strict=True))
    defaults |= {
        one.arg: value for one, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if value
    }
    weights = {one.arg: vocabulary.role_of(one.arg) for one in parameters if _WEIGHT.fullmatch(one.arg)}
    text = ast.unparse(function)
    inside = "\n".join(map(ast.unparse, function.body))
    if not {"q", "k", "v"} <= set(weights.values()) or not weighs.search(inside):
        return ""
    biases = {one.arg: found[1] for one in parameters if (found := _BIAS.fullmatch(one.arg))}
    sizes = {one.arg: vocabulary.size_in(one.arg, text) for one in parameters if one.arg not in {*weights, *biases}}
    sizes = {name: symbol for name, symbol in sizes.items() if symbol in _KNOWN}
    has_heads, has_groups = "H" in sizes.values(), "G" in sizes.values()
    of_role = _SHAPES_OF_HEADS if has_heads else _SHAPES_OF_ONE
    layers = []
    for name, role in weights.items():
        out, into = of_role[role or "o"]
        out = "num_kv_heads * self.head_dim" if has_groups and role in ("k", "v") else out
        layers.append(f"        self.{name} = _nn.Linear({into}, {out}, bias={role in biases.values()})\n")
    if has_heads:
        layers.insert(
            0, "        self.width, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads\n"
        )
        layers.insert(1, "        self.num_kv_heads = num_kv_heads\n" * has_groups)
    own = {name: f"self.{name}.weight{'.T' * _multiplies_from_the_left(name, text)}" for name in weights}
    own |= {name: f"self.{next(one for one in weights if weights[one] == role)}.bias" for name, role in biases.items()}
    own |= {name: _KNOWN[symbol] for name, symbol in sizes.items() if has_heads and symbol is not None}
    kept = [one.arg for one in parameters if one.arg not in own and not (one.arg in sizes and one.arg in defaults)]
    given = [f"{one.arg}={own.get(one.arg, one.arg)}" for one in parameters if one.arg in own or one.arg in kept]
    inputs = [name + (f"={ast.unparse(defaults[name])}" if name in defaults else "") for name in kept]
    constructor = "embed_dim, num_heads" + ", num_kv_heads" * has_groups if has_heads else "d_in, d_k, d_v"
    return _HEAD.format(
        name=f"{function.name}{SUFFIX}",
        sizes=constructor,
        layers="".join(layers),
        inputs=", ".join(inputs),
        function=function.name,
        given=", ".join(given),
    )


_KNOWN = {"H": "self.num_heads", "G": "self.num_kv_heads", "E": "self.width", "D": "self.head_dim", "p": "0.0"}
_SHAPES_OF_HEADS = dict.fromkeys("qkvo", ("embed_dim", "embed_dim"))
_SHAPES_OF_ONE = {"q": ("d_k", "d_in"), "k": ("d_k", "d_in"), "v": ("d_v", "d_in"), "o": ("d_in", "d_v")}


def _multiplies_from_the_left(name: str, text: str) -> bool:
    """Whether the function has the matrix as (in, out), as in `x @ W`; where nothing says it, too."""
    own = rf"(?<![\w.]){re.escape(name)}\b"
    return (
        re.search(
            rf"linear\([^()]*,\s*{own}(?!\.T|\.t\()|(?:@|matmul\([^()]*,)\s*{own}\.(?:T\b|mT\b|t\(|transpose)", text
        )
        is None
    )
