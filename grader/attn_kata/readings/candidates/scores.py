"""Attention with a learned score, by other names: additive (Bahdanau's) and multiplicative (Luong's).

Its inputs are a query, keys and values, and most code takes the keys as the values. The query is often the one state of a
decoder. The layers are those of the score: two matrices, or one over query and key side by side, and a vector; or one matrix.
"""

from __future__ import annotations

import ast
import itertools
import re
import textwrap
from dataclasses import replace

from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import ONE_QUERY, Layer, Pairs, Reading, with_flags
from attn_kata.readings.source.structure import Definition, code_of

Shapes = dict[str, tuple[int, ...]]

MOST_PARAMETERS = 6  # vectors, or matrices; a score has three of both, and every pair is tried
KIND = re.compile(r"method|mode(?!l)|type|kind|align|^score|^attn$")  # of a score, where the code offers several
_MASK = re.compile(r"mask|(?:^|_)pad|valid|len(?:gth)?s?$|^keep|ignore")
_KEY = re.compile(r"enc|mem|annot|source|src|key|^k(?:_|$)|^hs$|^h_?s$|context|^ctx|feat|^e_|_e$")
_VALUE = re.compile(r"^v(?:_|$|al)")
_QUERY = re.compile(r"quer|dec|hid|stat|^s(?:_|$|t)|^q(?:_|$)|^h(?:_|$|t)|rnn|lstm|gru|tgt|target|out|^d_|_d$")
_SURE_QUERY = re.compile(r"^q(?:_|$)|quer")  # beside it, a hidden state is a key: (h, q)
_OUTPUTS, _STATE = re.compile(r"^(?!.*(?:dec|tgt)).*out(?:put)?s?$"), re.compile(r"hid|state$|final")
_SIDES = re.compile(r"cat\(\s*[\[(]\s*([\w.]+)[^,]*,\s*([\w.]+)")
_SAYS_TIME_FIRST = re.compile(r"(?:seq\w*|src|max|time)_?(?:len\w*|steps?)\s*,\s*(?:b|n|batch\w*|bsz)\b|time first")
_TURNS_TIME = re.compile(r"permute\(1, 0, 2\)|transpose\(0, 1\)")
_OF_KEYS = re.compile(r"enc|key|annot|mem|source|src|context|^u|kv_|_k$|^k_")
_OF_QUERY = re.compile(r"dec|quer|hid|stat|tgt|_q$|^q_")


def inputs(definition: Definition) -> dict[str, str]:
    """What each parameter of the call is, by its name and then by its place: q, k, v or mask."""
    found: dict[str, str] = {}
    names = _passed_as(definition)
    taken = [one for one in definition.call if not (KIND.search(one.name.lower()) and _allowed(definition))]
    sure = [one for one in taken if one.default is None and _SURE_QUERY.search(one.name.lower())]
    for parameter in (*sure, *(one for one in taken if one not in sure)):
        called = names.get(parameter.name, parameter.name)
        role = _role(called.lower().replace("query_", "q_")) or _role(parameter.name.lower().replace("query_", "q_"))
        if role is not None and role not in found.values():
            found[parameter.name] = role
    for parameter in taken:  # whose name says nothing: in the place that is free
        if parameter.name not in found and parameter.default is None and not parameter.name.startswith("*"):
            free = [one for one in ("q", "k", "v", "mask") if one not in found.values()]
            if free:
                found[parameter.name] = free[0]
    found = {one.name: found[one.name] for one in taken if one.name in found}
    first, second = (next((name.lower() for name, each in found.items() if each == role), "") for role in ("q", "k"))
    if _OUTPUTS.search(first) and _STATE.search(second) and not _KEY.search(second):  # (lstm_output, final_state)
        found = {name: {"q": "k", "k": "q"}.get(role, role) for name, role in found.items()}
    for name in list(found):  # what its caller has projected: (h, att_feats, p_att_feats)
        plain = re.sub(r"^(?:p|proj|projected)_", "", name.lower())
        if plain != name.lower() and plain in found:
            found |= {name: "k", plain: "v"}
    if [role for role in found.values() if role != "mask"] in (["q"], ["v"]):  # what it pools
        found = {name: role if role == "mask" else "k" for name, role in found.items()}
    if "k" not in found.values():  # (query, values): what is mixed is also what is compared
        found = {name: "k" if role == "v" else role for name, role in found.items()}
    return found


def pools(definition: Definition) -> bool:
    """Whether it takes keys alone, and compares them with a vector of its own: tanh(W k + b) · v (Yang et al., 2016)."""
    return set(inputs(definition).values()) - {"mask"} == {"k"}


def _passed_as(definition: Definition) -> dict[str, str]:
    """What a method of its own calls the inputs that the call hands on as they are, in their order."""
    tree = ast.parse(textwrap.dedent(definition.text))
    methods = {one.name: one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
    given = {one.name for one in definition.call}
    forward = methods.get("forward")
    for each in ast.walk(forward) if forward is not None else ():
        if not isinstance(each, ast.Call) or not isinstance(each.func, ast.Attribute) or each.func.attr not in methods:
            continue
        handed = [one.id if isinstance(one, ast.Name) else "" for one in each.args]
        if len(handed) > 1 and all(name in given for name in handed):
            own = [one.arg for one in methods[each.func.attr].args.args if one.arg != "self"]
            return dict(zip(handed, own, strict=False))
    return {}


def _role(name: str) -> str | None:
    for role, pattern in (("mask", _MASK), ("k", _KEY), ("v", _VALUE), ("q", _QUERY)):
        if pattern.search(name):
            return role
    return None


def _allowed(definition: Definition) -> list[str]:
    """The kinds of score that the code compares a name of its own with: method == 'dot'."""
    return [f"'{word}'" for word in re.findall(r"\w+\s*==\s*[\"']([\w-]+)[\"']", definition.text)]


def call(definition: Definition, contract: Contract, *, mask: bool) -> Pairs:
    """The call; the keys are the values where it does not take values."""
    given = inputs(definition)
    pairs = []
    for parameter in definition.call:
        role = given.get(parameter.name)
        if role == "mask" and not mask:
            pairs += [(parameter.name, "None")] if parameter.default is None else []
        elif role is not None:
            pairs.append((parameter.name, role))
        elif parameter.default is None and not parameter.name.startswith("*"):
            allowed = _allowed(definition) if KIND.search(parameter.name.lower()) else []
            pairs.append((parameter.name, kind_of(contract, allowed) if allowed else "None"))
    return tuple(pairs)


def symbol_of(name: str, contract: Contract) -> str:
    """The symbol of a size of the constructor: I of the query, C of the keys, E of what is between."""
    lower = name.lower()
    if re.search(r"enc|key|annot|mem|src|source|context|value|feature|image", lower):
        return "C"
    if re.search(r"dec|query|tgt|state", lower):
        return "I"
    return "D" if any(symbol == "D" for symbol, _ in contract.arguments) else "I"


def width_of_input(name: str, definition: Definition) -> str:
    """I or C for a width with the name of an input of the call, of the query or of the keys: q_dim, s_dim; else ""."""
    begins = re.fullmatch(r"(?:dim_|d_)?(\w+?)(?:_?(?:dim|size|width|hidden|features?))?", name)
    role = inputs(definition).get(begins[1]) if begins is not None and begins[1] != name else None
    return {"q": "I", "k": "C"}.get(role or "", "")


_ADDITIVE, _PRODUCT = r"concat|bahdanau|addi|mlp|tanh|perceptron", r"general|luong|bilin|multi|matrix"


def kind_of(contract: Contract, allowed: list[str]) -> str:
    """What code that offers several scores calls this one: one of those that it allows, if it says which."""
    additive = "v" in contract.layers
    for words in (_ADDITIVE,) if additive else (_PRODUCT, "dot"):
        found = next((one for one in allowed if re.search(words, one.lower())), None)
        if found is not None:
            return found
    return "'concat'" if additive else "'general'"


def ways(reading: Reading, definition: Definition) -> list[Reading]:
    """The reading for each way in which query and keys may be laid out, the likeliest first."""
    orders: tuple[str, ...] = ("time", "batch") if _TURNS_TIME.search(definition.text) else ("batch", "time")
    if _SAYS_TIME_FIRST.search(definition.text.lower()):
        orders = ("time",)  # read otherwise, a softmax over the batch could be right
    if _says_shape(definition, "k", 3):  # read time first, what is laid on the samples could be right
        orders = ("batch",)
    if _says_shape(definition, "k", 3, _TIME):
        orders = ("time",)
    # A state of a recurrent layer, (1, B, E): where its first dimension goes, (B, E) would raise for one sample.
    squeezed = re.search(r"squeeze\((?:\w+\s*,\s*)?(?:dim\s*=\s*)?0\)", definition.text) is not None
    queries: tuple[str, ...] = ONE_QUERY[::-1] if squeezed else ONE_QUERY
    asks = "|".join(re.escape(name) for name, role in inputs(definition).items() if role == "q")
    if re.search(rf"\b(?:{asks})\.squeeze\((?:dim\s*=\s*)?1\)", definition.text):  # (B, E) would go through unchanged
        queries = tuple(sorted(ONE_QUERY, key=lambda query: query != "(B, 1, E)"))
    if pools(definition):
        return [replace(reading, order=order) for order in orders]
    given = [reading]
    if definition.before:  # keys that were given before are most often those of the values, too
        given.append(replace(reading, call=tuple((name, "k" if role == "v" else role) for name, role in reading.call)))
    return [
        replace(one, order=order, query=query)
        for one in dict.fromkeys(given)
        for order in orders
        for query in (("(B, E)",) if _says_shape(definition, "q", 2) else ("(B, T, E)", *queries))
    ]


_BATCH = r"(?:b|n|bs|bsz|batch\w*)"
_TIME = rf"(?:s|t|l|seq\w*|src\w*|time\w*|\w*len\w*)(?=\s*,\s*{_BATCH}\s*,)"


def _says_shape(definition: Definition, role: str, dimensions: int, first: str = _BATCH) -> bool:
    """Whether words say that the query or the keys have so many dimensions, the batch `first`: `# query: (B, H)`."""
    names = "|".join(re.escape(name) for name, one in inputs(definition).items() if one == role)
    size = r"\s*,\s*[\w*./ +-]+"
    shape = rf"[(\[]\s*{first}{size * (dimensions - 1)}\s*[)\]]"
    between = r"is|has|of|shape|the|an?|hidden|last|states?|vectors?|outputs?|:|=|-|,|\s"
    words = rf"(?i)\b(?:{names})\b`?\s*(?:{between})*{shape}"
    comments = "\n".join(re.findall(r"#[^\n]*|\"{3}[\s\S]*?\"{3}", definition.text))
    return bool(names) and re.search(words, comments) is not None


def with_layers(reading: Reading, shapes: Shapes, definition: Definition, contract: Contract) -> list[Reading]:
    """The reading with the places of the score's layers, once for each way in which names and shapes can be understood."""
    after = layers_after(definition)
    weights = {
        path: shape for path, shape in shapes.items() if not _is_bias(path, shapes) and path.split(".")[0] not in after
    }
    if "v" not in contract.layers and not weights:
        return [reading]  # plain products: its keys are compared as they are
    if "v" not in contract.layers:
        matrices = [path for path, shape in weights.items() if len(shape) == 2]
        of_both = [
            with_flags(reading, {"q": _layer(query, shapes, "rows"), "k": _layer(key, shapes, "rows")})
            for query, key in (_pairs(matrices, definition) if len(matrices) == 2 else [])
        ]
        return of_both or [
            with_flags(reading, {"k": _layer(path, shapes, layout)})
            for path in matrices
            for layout in (("rows", "columns") if _in_order(path, definition) else ("columns", "rows"))
        ]
    vectors = [path for path, shape in weights.items() if _is_vector(shape)]
    matrices = [path for path, shape in weights.items() if len(shape) == 2 and path not in vectors]
    if max(len(vectors), len(matrices)) > MOST_PARAMETERS:
        return []
    # A bias of no layer is added inside of the tanh: it counts as that of the query's.
    loose = next((path for path in shapes if _is_bias(path, shapes) and "." not in path), "")
    found = []
    for vector in vectors:
        shape = weights[vector]
        layout = "vector" if len(shape) == 1 else "columns" if shape[1] == 1 else "rows"
        v = _layer(vector, shapes, layout)
        if pools(definition):
            stored = ("rows",) if matrices and matrices[0].endswith(".weight") else ("columns", "rows")
            keys = [_layer(matrices[0], shapes, way) for way in stored] if len(matrices) == 1 else []
            keys = [replace(k, bias=k.bias or loose) for k in keys]
            build = tuple((name, "C" if value == "I" else value) for name, value in reading.build)
            found += [with_flags(replace(reading, build=build), {"k": k, "v": v}) for k in keys]
            continue
        if not matrices and len(vectors) == 1 and _SIDES.search(definition.text):  # for query and key side by side
            whole = replace(v, layout="score")
            both = {"q": whole, "k": whole, "v": whole, "arrangement": "beside"}
            found += [with_flags(reading, {**both, "fused": order}) for order in _orders(definition)]
        if len(matrices) == 1:
            layer = _layer(matrices[0], shapes, "rows")
            for order in _orders(definition):
                beside: dict[str, object] = {"q": layer, "k": layer, "v": v, "fused": order, "arrangement": "beside"}
                found.append(with_flags(reading, beside))
            if _takes_projected_keys(definition):
                found.insert(0, with_flags(reading, {"q": layer, "v": v}))
        for query, key in _pairs(matrices, definition):
            is_for_callers = (
                len(re.findall(rf"\bself\.{re.escape(key.partition('.')[0])}\b", code_of(definition.text))) == 1
            )
            if is_for_callers and _takes_projected_keys(definition):  # the annotated encoder-decoder (Bastings, 2018)
                found.append(with_flags(reading, {"q": _layer(query, shapes, "rows"), "v": v}))
                continue
            stored = ("rows",) if query.endswith(".weight") else ("rows", "columns")
            for way in stored:
                q = _layer(query, shapes, way)
                q = replace(q, bias=loose) if not q.bias else q
                one: dict[str, object] = {"q": q, "k": _layer(key, shapes, way), "v": v}
                found.append(with_flags(reading, one))
    return found


def _takes_projected_keys(definition: Definition) -> bool:
    """Whether its caller has projected the keys: it takes them by such a name, or beside the values."""
    taken = inputs(definition)
    named = any(re.match(r"p_|proj", name) for name, role in taken.items() if role == "k")
    return named or sum(role != "mask" for role in taken.values()) > 2


def layers_after(definition: Definition) -> tuple[str, ...]:
    """The layers that only what follows the softmax is given: W context, or tanh(W [context; query]) (Luong et al., 2015)."""
    code = with_softmax(code_of(definition.text), definition)
    begin = code.rfind("softmax")
    end = _end_of_call(code, begin)
    before, after = (code[:end], code[end:]) if begin >= 0 else (code, "")
    after, *others = re.split(r"(?m)^(?=[ \t]*def )", after, maxsplit=1)  # a method below may be called before
    before += "".join(others)
    given = "|".join(re.escape(one.name) for one in definition.call)
    return tuple(
        name
        for name, made in definition.layers.items()
        if made == "Linear" and re.search(rf"self\.{name}\(", after) and not re.search(rf"self\.{name}\(", before)
        if re.search(r"\bcat\(", after) or not re.search(rf"self\.{name}\(\s*(?:{given})\b", after)
    )


def joins_query(definition: Definition) -> bool:
    """Whether what it returns is the query beside the context, with no layer after it: cat([query, context], dim=-1)."""
    after = with_softmax(code_of(definition.text), definition).rpartition("softmax")[2]
    queries = "|".join(re.escape(name) for name, role in inputs(definition).items() if role == "q")
    joined = rf"\bcat\(\s*[\[(]\s*(?:(?:{queries})\b[^,\])]*,|[\w.()]+\s*,\s*(?:{queries})\b)"
    return bool(queries) and not layers_after(definition) and re.search(joined, after) is not None


def with_softmax(code: str, definition: Definition) -> str:
    """The code with the word softmax where it calls one by another name: self.sm(scores)."""
    for name, made in definition.layers.items():
        if made == "Softmax":
            code = re.sub(rf"\bself\.{name}\(", "softmax(", code)
    return code


def _end_of_call(code: str, begin: int) -> int:
    """Where the brackets that are opened after a place in code are all closed again."""
    depth = 0
    for place in range(code.find("(", begin), len(code)):
        depth += (code[place] in "([{") - (code[place] in ")]}")
        if depth == 0:
            return place + 1
    return len(code)


def _pairs(matrices: list[str], definition: Definition) -> list[tuple[str, str]]:
    """Which matrix is the query's and which the keys': by name, then by what it is applied to, else both ways round."""
    found = []
    for query, key in itertools.permutations(matrices, 2):
        names = [path.removesuffix(".weight").lower() for path in (query, key)]
        wrong = _OF_KEYS.search(names[0]) or _OF_QUERY.search(names[1])
        used = _applied_to(query, definition), _applied_to(key, definition)
        if used == ("q", "k") or (not wrong and used not in (("k", "q"), ("k", None), (None, "q"))):
            found.append((query, key))
    return found


def _applied_to(path: str, definition: Definition) -> str | None:
    """q or k by the name of what a layer is applied to in the source; None where it does not say."""
    used = re.search(rf"self\.{re.escape(path.removesuffix('.weight'))}\(\s*(\w+)\s*\)", definition.text)
    if used is None:
        return None
    role = inputs(definition).get(used[1]) or _role(used[1].lower())
    return {"q": "q", "k": "k", "v": "k"}.get(role or "")


def _orders(definition: Definition) -> list[tuple[str, str]]:
    """The order in which query and key are laid side by side: as the source names them."""
    both = [("q", "k"), ("k", "q")]
    sides = _SIDES.search(definition.text)
    if sides is None:
        return both
    first, second = (_role(name.lower()) for name in sides.groups())
    return [("q", "k")] if (first, second) == ("q", "k") else [("k", "q")] if (first, second) == ("k", "q") else both


def _in_order(path: str, definition: Definition) -> bool:
    """Whether the matrix is stored as the contract's, for all that the source says: by a layer on the keys, or as q W k."""
    name = path.removesuffix(".weight")
    used = re.search(rf"self\.{re.escape(name)}\(\s*([\w.]+)", definition.text)
    return used is None or _role(used[1].lower()) != "q"


def _is_vector(shape: tuple[int, ...]) -> bool:
    return len(shape) == 1 or (len(shape) == 2 and 1 in shape)


def _is_bias(path: str, shapes: Shapes) -> bool:
    return path.endswith("bias") or (len(shapes[path]) == 1 and re.fullmatch(r"b\w?|b_\w+", path) is not None)


def _layer(path: str, shapes: Shapes, layout: str) -> Layer:
    bias = f"{path.removesuffix('weight')}bias"
    return Layer(weight=path, bias=bias if path.endswith(".weight") and bias in shapes else "", layout=layout)
