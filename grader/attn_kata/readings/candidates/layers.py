"""Where the parameters of q, k, v and o can be: by shape first, then by name, then in the order in which they are made."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

from attn_kata.readings.candidates import positions, scores, storing
from attn_kata.readings.candidates.building import LOOK
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import ARRANGEMENTS, Layer, Reading, with_flags
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Structure, code_of

Shapes = dict[str, tuple[int, ...]]


def with_layers(
    reading: Reading, shapes: Shapes, definition: Definition, structure: Structure, contract: Contract
) -> list[Reading]:
    """The reading with the places of q, k, v and o, once for each way in which names and shapes can be understood."""
    if contract.has_score:
        return scores.with_layers(reading, shapes, definition, contract)
    weights = {
        path: shape
        for path, shape in shapes.items()
        if len(shape) > 1
        and not _in_bypassed(path, reading)
        and not _is_bias(path, shapes)
        and not _is_between_heads(shape)
        and not positions.is_off(path, reading.unturned)
    }
    if not weights:  # who calls it makes q, k and v, and what becomes of the result
        splits = contract.takes_qkv and "H" in {value for _, value in reading.build}
        return [replace(reading, alike=contract.has_own_sizes)] if splits else []
    groups = _groups(weights, int(LOOK["H"]), may_be_wide=contract.has_heads)
    wanted = [
        role for role in ("q", "k", "v", "o") if role in contract.layers or ("qkv" in contract.layers and role != "o")
    ]
    made = {one: maker for part in structure.reach(definition) for one, maker in part.layers.items()}
    # A layer of the source's own, such as its own Linear, adds a bias only if it has one.
    biased = {path.removesuffix("bias") for path in shapes if path.endswith("bias")}
    unbiased = {
        path
        for path in weights
        if structure.find(made.get(_bare(path).rpartition(".")[2], "")) is not None
        and path.removesuffix("weight") not in biased
    }
    # One whose weight is all that the code takes of it, as F.linear(x, self.q.weight), adds none by itself either.
    code = code_of(structure.text(definition))
    # That of a file that is not here may have none: what stands for it has one.
    stands_in = {
        path
        for path in weights
        if not structure.imports.get(made.get(_bare(path).rpartition(".")[2], ""), "torch").startswith("torch")
    }
    unbiased |= {
        path
        for path in weights
        if (path in stands_in or path.removesuffix("weight") not in biased) and _is_weight_alone(path, code)
    }
    turned = {
        path
        for path, shape in weights.items()
        if len(shape) == 2 and _multiplies_by_rows(structure.find(made.get(_bare(path).rpartition(".")[2], "")))
    }
    fused: dict[str, tuple[str, ...]] = {}
    named: dict[str, str] = {}
    rest: list[str] = []
    # What belongs to an mlp inside, and what nothing reads, is the last to be q, k, v or o.
    for path, shape in sorted(
        groups.items(),
        key=lambda one: re.search(r"ffn?\b|mlp|feed", one[0].lower()) is not None or _is_never_read(one[0], code),
    ):
        kind = _fused(path, shape, groups)
        if kind:
            fused[path] = kind
            continue
        role = None if _is_of_a_list(path, groups) else vocabulary.role_of(_bare(path))
        if role in wanted and role not in named:
            named[role] = path
        elif role is None or role in named:
            rest.append(path)
    for kind in fused.values():
        for role in kind:
            named.pop(role, None)
    covered = {role for kind in fused.values() for role in kind} | set(named)
    order = creation_order(rest, definition, structure)
    open_roles = [role for role in wanted if role not in covered]
    assignments: list[dict[str, str]] = []
    for_callers = contract.takes_qkv and len(open_roles) == len(wanted)  # they make q, k and v, and it joins the heads
    if "o" in open_roles and len(order) == 1 and (len(open_roles) == 1 or for_callers):
        assignments.append({"o": order[0]})
    elif open_roles and len(order) >= len([role for role in open_roles if role != "o"]):
        qkv = [role for role in open_roles if role != "o"]
        # A list is in the order q, k, v: another order that explains the code would hide that two are swapped.
        in_list = all(re.search(r"\.\d+(?:\.|$)", path) for path in order)
        for chosen in [tuple(qkv)] if in_list else itertools.permutations(qkv):
            roles = [*chosen, *(["o"] if "o" in open_roles and len(order) > len(qkv) else [])]
            assignments.append(dict(zip(roles, order, strict=False)))
    readings = []
    for more in assignments or [{}]:
        places = {**named, **more}
        lacking = [role for role in wanted if role not in places and role not in covered and role != "o"]
        made_by_caller = len(lacking) == 3 and contract.takes_qkv and "o" in places
        if lacking and not made_by_caller and (len(lacking) > 1 or rest or len(wanted) < 3):
            continue  # one alone may be missing: what it would make is taken as it is, or another layer does its work
        if lacking and (contract.is_cross or contract.has_own_sizes):
            reading = replace(reading, alike=True)
        layers = {role: _layer(path, shapes, made, role) for role, path in places.items()}
        for path, kind in fused.items():
            apart = _biases_apart(path, kind, shapes)
            whole = _layer(path, shapes, made, "qkv", len(kind))
            layers |= {role: replace(whole, bias=apart.get(role, whole.bias)) for role in kind if role in wanted}
        layers = {role: replace(one, bias="") if one.weight in unbiased else one for role, one in layers.items()}
        for role, layer in list(layers.items()):
            beside = _biases_apart(layer.weight, (role,), shapes) if layer.weight in unbiased else {}
            layers[role] = replace(layer, bias=beside.get(role, layer.bias))
        width = _width_of_heads(layers, shapes, fused) if contract.has_heads and not contract.has_groups else LOOK["D"]
        if width > LOOK["D"]:
            layers = {role: replace(one, layout="wide") for role, one in layers.items()}
            reading = replace(reading, head_width=0 if width == LOOK["E"] else int(width))
        layers = {
            role: replace(one, layout="columns") if one.weight in turned and one.layout == "rows" else one
            for role, one in layers.items()
        }
        one = with_flags(reading, {role: _of_one_head(layer, shapes, contract) for role, layer in layers.items()})
        orders, text = _orders(fused, definition, structure), structure.text(definition)
        several = fused and contract.has_heads and not reading.one_group
        for arrangement in _arrangements(definition, structure) if several else ("blocks",):
            for order_of_roles in orders:
                readings += [
                    replace(raw, fused=order_of_roles, arrangement=arrangement) for raw in _raw(one, contract, text)
                ]
    return [each for one in readings for each in _beside_x(one, shapes)]


def _beside_x(reading: Reading, shapes: Shapes) -> list[Reading]:
    """The reading; of an output layer that is given x beside the heads' result, once for each order of the two."""
    if shapes.get(reading.o.weight) != (LOOK["E"], 2 * LOOK["E"]) or reading.o.layout == "wide":
        return [reading]
    return [replace(reading, o=replace(reading.o, layout=layout)) for layout in ("left", "right")]


_ROWS = re.compile(r"@\s*self\.(?:weight|W|w)\b(?!\.)|matmul\(\s*\w+\s*,\s*self\.(?:weight|W|w)\s*\)")


def _multiplies_by_rows(layer: Definition | None) -> bool:
    """Whether a layer of the source's own keeps its weight as (in, out): `x @ self.weight`."""
    return layer is not None and _ROWS.search(layer.text) is not None


def _of_one_head(layer: Layer, shapes: Shapes, contract: Contract) -> Layer:
    """The layer; where it has the size of one head, and the contract's is for all of them: as shared by the heads, or as
    one of each head's own, for its own columns."""
    size = LOOK["D"], LOOK["D"]
    is_small = shapes.get(of_first_head(layer.weight)) == size
    of_all = contract.has_heads and all(symbol != "I" for symbol, _ in contract.arguments)
    layout = "slices" if ".*" in layer.weight else "shared"
    return replace(layer, layout=layout) if is_small and of_all else layer


def _are_heads_alone(weights: Shapes) -> bool:
    """Whether there are only layers of wide heads, three for each: their results are laid side by side."""
    each = {re.sub(r"\.\d+\.", ".*.", path) for path in weights}
    if len(each) != 3 or len(weights) != 3 * LOOK["H"] or len(set(weights.values())) != 1:
        return False
    rows, columns = (*next(iter(weights.values())), 0)[:2]
    return columns == LOOK["E"] and rows > LOOK["D"]


def _width_of_heads(layers: dict[str, Layer], shapes: Shapes, fused: dict[str, tuple[str, ...]]) -> float:
    """How many features each head has, by the sizes of the layers; 0 where they do not agree."""
    widths = set()
    for role in ("q", "k", "v", *(["o"] if "o" in layers else [])):
        path = layers[role].weight if role in layers else ""
        shape = shapes.get(of_first_head(path), ())
        if not path.endswith(".weight") or len(shape) != 2 or shape[role != "o"] != LOOK["E"]:
            return 0
        widths.add(shape[role == "o"] / (1 if ".*" in path else LOOK["H"] * len(fused.get(path, (role,)))))
    width = widths.pop()
    return 0 if widths or width % 1 else width


def of_first_head(path: str) -> str:
    """The path of the first head's parameter, where `*` stands for one of each head."""
    return re.sub(r"\.\*(?=\.|$)", ".0", path)


def _is_bias(path: str, shapes: Shapes) -> bool:
    """Whether it is the bias beside a weight; one of each head has two dimensions."""
    return path.endswith(".bias") and f"{path.removesuffix('bias')}weight" in shapes


def _is_between_heads(shape: tuple[int, ...]) -> bool:
    """Whether a weight has no size but that of the heads: it mixes or joins what the heads give, as their weights."""
    return LOOK["H"] in shape and set(shape) <= {1, LOOK["H"]}


def _in_bypassed(path: str, reading: Reading) -> bool:
    starred = re.sub(r"\.\d+(?=\.)", ".*", path)
    return any(one.startswith(f"{name}.") for name in reading.bypassed for one in (path, starred))


def _groups(weights: Shapes, heads: int, *, may_be_wide: bool) -> Shapes:
    """The weights by path; those of one layer per head as one, with `*` for the head. They may be as wide as x, or wider."""
    alone = may_be_wide and _are_heads_alone(weights)
    starred: dict[str, list[str]] = {}
    for path in weights:
        parts = path.split(".")
        for place, part in enumerate(parts):
            if part.isdecimal():
                starred.setdefault(".".join([*parts[:place], "*", *parts[place + 1 :]]), []).append(path)
                break
    groups: Shapes = {}
    together: dict[str, str] = {}
    for star, paths in starred.items():
        # As many as heads, each with the rows of one: not a list of q, k and v.
        shape = weights[paths[0]]
        wide = alone or (may_be_wide and (LOOK["E"], heads * shape[0]) in weights.values())
        if len(paths) == heads and (wide or LOOK["E"] > min(shape[:2])):
            together.update(dict.fromkeys(paths, star))
    for path, shape in weights.items():
        groups[together.get(path, path)] = shape
    return groups


def _is_of_a_list(path: str, groups: Shapes) -> bool:
    """Whether it is one of three or more that differ by a number alone: `linear.0`, `fc1`. It says nothing of the output."""
    numbered = re.fullmatch(r"(.*[A-Za-z._])(\d+)", _bare(path))
    if numbered is None or vocabulary.role_of(numbered[1].rstrip("._")) != "o":
        return False
    return sum(re.fullmatch(rf"{re.escape(numbered[1])}\d+", _bare(other)) is not None for other in groups) > 2


def _bare(path: str) -> str:
    return path.removesuffix(".weight")


def _fused(path: str, shape: tuple[int, ...], groups: Shapes) -> tuple[str, ...]:
    """q, k and v, or k and v, where the layer is one for several."""
    shape = _without_kernel(shape)
    name = re.sub(r"[^a-z]", "", _bare(path).rpartition(".")[2].lower())
    says_three = re.search(r"qkv|kvq|qvk|vkq|querykeyvalue|inproj|cattn|kqv|vqk|allproj", name) is not None
    says_two = re.search(r"kv", name) is not None and not says_three
    if len(shape) == 2 and re.fullmatch(
        r"(?:to|w|proj|in|fc|linear)*(?:qk|qwk|querykey|qandk)(?:proj|linear|layer|s)*", name
    ):
        return ("q", "k") if {2 * LOOK["E"], 2 * LOOK["D"]} & set(shape) else ()
    largest = sorted(shape)[-1]
    if len(shape) == 2 and (says_three or vocabulary.role_of(_bare(path)) in (None, "o")):  # first_proj, last_proj
        others = [other for each, other in groups.items() if each != path and len(_without_kernel(other)) == 2]
        grouped = LOOK["E"] + 2 * LOOK["G"] * LOOK["D"]
        single = LOOK["E"] + 2 * LOOK["D"]
        three = any(size in (3 * LOOK["E"], 3 * LOOK["D"], grouped, single) for size in shape)
        # Of heads of another width, which the output layer has too.
        three = three or (shape[1] == LOOK["E"] and (LOOK["E"], shape[0] / 3) in others)
        if three and (says_three or len(others) <= 1):
            return ("q", "k", "v")
    if len(shape) == 2 and (
        says_two
        or (
            (largest == 2 * LOOK["E"] or 2 * LOOK["G"] * LOOK["D"] in shape) and vocabulary.role_of(_bare(path)) is None
        )
    ):
        return ("k", "v")
    return ()


def _without_kernel(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a weight without the sizes of a kernel that sees one place: (out, in) of (out, in, 1, 1)."""
    return shape[:2] if set(shape[2:]) == {1} else shape


def creation_order(paths: list[str], definition: Definition, structure: Structure) -> list[str]:
    """Layers in the order in which the source sets them."""
    order = [name for part in structure.reach(definition) for name in part.layers]

    def place(path: str) -> tuple[int, list[object]]:
        parts = path.split(".")
        known = [order.index(part) for part in parts if part in order]
        return (known[0] if known else len(order)), [int(part) if part.isdecimal() else 0 for part in parts]

    return sorted(paths, key=place)


def _layer(path: str, shapes: Shapes, made: dict[str, str], role: str, count: int = 1) -> Layer:
    """The layer at a path: its bias and how its weight is stored."""
    first = of_first_head(path)
    shape = shapes[first]
    if path.endswith(".weight"):
        bias = path.removesuffix("weight") + "bias"
        is_linear = True
    else:
        bias = _bias_beside(path, first, shapes)
        is_linear = False
    layout = "rows"
    if len(shape) > 3:  # sizes of 1 that make it broadcast, or those of a kernel; the adapter puts them back
        shape = tuple(size for size in shape if size != 1)
    if len(shape) == 3:
        layout = _layout_of_heads(shape) if shape[-1] != 1 else "conv"
    elif (is_linear and made.get(_bare(path).rpartition(".")[2]) == "Conv1D") or (
        count > 1 and shape[1] == count * LOOK["E"] and shape[0] != shape[1]
    ):
        layout = "columns"
    elif len(shape) == 2 and shape[0] != shape[1] and not is_linear and role != "o" and count == 1:
        layout = "columns" if shape[1] in (LOOK["D"], LOOK["V"]) and shape[0] not in (LOOK["D"], LOOK["V"]) else "rows"
    return Layer(weight=path, bias=bias, layout=layout)


def _is_never_read(path: str, code: str) -> bool:
    """Whether the code has the layer only where it makes it."""
    name = re.escape(path.partition(".")[0])
    return len(re.findall(rf"\bself\.{name}\b", code)) == 1 and re.search(rf"\bself\.{name}\s*=[^=]", code) is not None


def _is_weight_alone(path: str, code: str) -> bool:
    """Whether the code reads the weight of a layer, and never calls the layer."""
    layer = re.escape(path.removesuffix(".weight"))
    is_read = re.search(rf"\bself\.{layer}\.weight\b", code) is not None
    return path.endswith(".weight") and is_read and re.search(rf"\bself\.{layer}\(", code) is None


def _biases_apart(path: str, roles: tuple[str, ...], shapes: Shapes) -> dict[str, str]:
    """The biases of a layer for several roles that has none itself: `q_bias` and `v_bias` beside `qkv.weight`, and none of k.

    {} where there are none. So in BEiT (Bao et al., 2021), where a bias of the keys would change nothing.
    """
    layer, _, last = path.rpartition(".")
    owner = layer.rpartition(".")[0] if last == "weight" else layer
    names = {role: f"{owner}.{role}_bias".removeprefix(".") for role in roles}
    has_its_own = f"{layer}.bias" in shapes or not any(name in shapes for name in names.values())
    return {} if has_its_own else {role: name if name in shapes else "" for role, name in names.items()}


def _bias_beside(path: str, first: str, shapes: Shapes) -> str:
    """The bias of a weight that is a parameter by itself: `in_proj_bias` of `in_proj_weight`, `b_Q` of `W_Q`."""
    owner, dot, name = path.rpartition(".")
    for old, new in (("weight", "bias"), ("W_", "b_"), ("w_", "b_"), ("W", "b"), ("w", "b"), ("proj", "bias")):
        other = f"{owner}{dot}{name.replace(old, new, 1)}"
        if other != path and other in shapes:
            return other
    beside = (f"{owner}{dot}{name}" for name in ("bias", "biases", "b") if owner)
    return next((other for other in beside if other in shapes), "")


def _layout_of_heads(shape: tuple[int, ...]) -> str:
    if shape[0] == LOOK["H"]:
        return "heads" if shape[1] == LOOK["D"] else "heads_columns"
    return "columns_heads"


def _orders(fused: dict[str, tuple[str, ...]], definition: Definition, structure: Structure) -> list[tuple[str, ...]]:
    """The orders of q, k and v in a shared layer: the one in which they are unpacked, by name; every one where nothing says."""
    if not fused:
        return [()]
    path, kind = max(fused.items(), key=lambda one: len(one[1]))
    named = _named_order(_bare(path).rpartition(".")[2])
    unpacked = [
        tuple(str(vocabulary.role_of(name)) for name in names)
        for part in structure.reach(definition)
        for names in part.unpacked
    ]
    of_all = [order for order in unpacked if sorted(order) == sorted(kind)][:1]
    # The name may say another order than the line that takes the layer's result apart.
    said = [*([named] if sorted(named) == sorted(kind) else []), *of_all]
    return list(dict.fromkeys(said)) if said else list(itertools.permutations(kind))


def _arrangements(definition: Definition, structure: Structure) -> tuple[str, ...]:
    """The arrangements of a shared layer, the one that the shapes in the source suggest first."""
    by_head = re.search(r"heads?\w*\s*,\s*(?:3\b|-1\s*\))", structure.text(definition)) is not None
    usual = ("by_head", "blocks", "innermost") if by_head else tuple(one for one in ARRANGEMENTS if one != "features")
    return (*usual, "features") if _HEADS_INNERMOST.search(structure.text(definition)) else usual


# (d k h), as in rearrange, or a view that ends with 3 and the heads: the features of a head lie apart.
_HEADS_INNERMOST = re.compile(
    r"rearrange\([^\"'\n]*[\"'][^\"'\n]*\(\s*d\w*\s+\w+\s+\w+\s*\)\s*->|3\s*,\s*(?:self\.)?\w*heads?\w*\s*\)",
    re.IGNORECASE,
)


def _named_order(name: str) -> tuple[str, ...]:
    """The order that a shared layer's name says: `query_key_value`, `to_kv`, `Wqkv`."""
    short = re.sub(r"[^a-z]", "", name.lower()).replace("query", "q").replace("key", "k").replace("value", "v")
    found = re.search(r"[qkv]{2,3}", short)
    return tuple(found[0]) if found else ()


def _raw(reading: Reading, contract: Contract, text: str) -> list[Reading]:
    """Square matrices that are no layers' weights may be stored either way, that of the output otherwise than the others."""
    raw = [
        role
        for role in ("q", "k", "v", "o")
        if reading.layer(role).weight
        and not reading.layer(role).weight.endswith(".weight")
        and reading.layer(role).layout == "rows"
    ]
    if not raw:
        return [reading]
    said = {role: storing.of_matrix(reading.layer(role).weight.rpartition(".")[2], text) for role in raw}
    found = []
    for others, output in (("columns",) * 2, ("rows",) * 2, ("columns", "rows"), ("rows", "columns")):
        ways = {role: said[role] or (output if role == "o" else others) for role in raw}
        found.append(
            with_flags(reading, {role: replace(reading.layer(role), layout=way) for role, way in ways.items()})
        )
    return list(dict.fromkeys(found))
