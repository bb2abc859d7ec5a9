"""A transformer block by other names: which class it is, and where its norms, its attention and its mlp are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from attn_kata.readings.candidates import layers
from attn_kata.readings.candidates.building import LOOK
from attn_kata.readings.candidates.layers import Shapes
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Layer, Reading, with_flags
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Structure, attention_like, code_of, has_layers_of_attention

_ATTENDS = re.compile(r"softmax|scaled_dot_product|MultiheadAttention", re.IGNORECASE)
_NAMED = re.compile(r"block|layer|transformer|encoder|decoder", re.IGNORECASE)
_MODEL = ("Embedding", "CrossEntropyLoss")
_SECOND = re.compile(r"2|mlp|ff|feed|post_?att|after_?att|fc", re.IGNORECASE)
_FIRST = re.compile(r"1|att|input|pre|sa\b|^sa_", re.IGNORECASE)
# Linear layers and convolutions of Tacotron 2, and norms of weights.
_NO_NORMS = re.compile(r"(?i)(?:linear|conv|spectral|weight)_?norm|normal_|normali[sz]ed?_?weights?")
_SCALES = ("weight", "gamma", "g", "a_2", "a2", "scale", "alpha", "w")
_SHIFTS = ("bias", "beta", "b", "b_2", "b2", "shift")


def block_like(structure: Structure) -> list[Definition]:
    """The classes that may be a block, the likeliest first: with norms and an attention, and no whole model."""
    found = []
    for place, one in enumerate(structure.own):
        made = set(one.layers.values())
        words = _NO_NORMS.sub("", one.text)
        normed = any(_is_norm(maker) for maker in made) or re.search(r"norm|\bln", words, re.IGNORECASE) is not None
        if not one.is_class or not one.call or not normed or _ATTENDS.search(structure.text(one)) is None:
            continue
        if made & set(_MODEL) or not re.search(
            r"mlp|ff|feed|linear|fc|gelu|relu|dense", structure.text(one), re.IGNORECASE
        ):
            continue
        found.append((place, one))
    # Neither the attention that a block uses, nor the stack that has many of them.
    users = {one.name for _, one in found if any(one.uses(other) and _NAMED.search(other.name) for _, other in found)}
    own = [(place, one) for place, one in found if len({_is_norm(made) for made in one.layers.values()} & {True})]
    return [
        one
        for _, one in sorted(
            own or found, key=lambda each: (each[1].name in users, not _NAMED.search(each[1].name), each[0])
        )
    ]


def whole_blocks(structure: Structure) -> list[Definition]:
    """The blocks that make two norms or more themselves."""
    return [one for one in block_like(structure) if norms_of(one) > 1 and not _is_attention_alone(one)]


def _is_attention_alone(one: Definition) -> bool:
    """Whether a class makes q, k, v and o, and beside them nothing but norms, dropout and softmax: of x and of a context."""
    small = re.compile("^[a-z]|Drop|Softmax")  # a function or a module without weights
    others = [name for name, made in one.layers.items() if not _is_norm(made) and not small.search(made)]
    return has_layers_of_attention(one) and all(_OF_SEVERAL.search(name) or vocabulary.role_of(name) for name in others)


_OF_SEVERAL = re.compile(r"(?i)kv|qk|c_attn|in_proj")  # one layer for two or three of q, k and v


def attentions_first(structure: Structure) -> list[Definition]:
    """The definitions that may be an attention, the likeliest first; behind them those that hold torch's, and blocks.

    A block without layers for q, k and v of its own holds the attention that is meant.
    """
    found = attention_like(structure)
    inner = [one for one in found if has_layers_of_attention(one)]
    whole = [
        one.name
        for one in block_like(structure)
        if one not in inner and any(one.uses(each) for each in inner) and _has_mlp(one, structure)
    ]
    return sorted(found, key=lambda one: (one.name in whole, _holds_ready_made(one)))


def _holds_ready_made(definition: Definition) -> bool:
    """Whether it has torch's attention and none of its own."""
    code = code_of(definition.text)
    return (
        re.search(r"(?<!class )\bMultiheadAttention\(", code) is not None
        and re.search(r"softmax|\.exp\(", code) is None
    )


def _has_mlp(definition: Definition, structure: Structure) -> bool:
    """Whether a class has linear layers beside those of its attention, with an activation."""
    owners = [owner for _, made, owner in structure.parts(definition) if made == "Linear"]
    return any(not has_layers_of_attention(one) and re.search(r"(?i)[gr]elu|silu|swish", one.text) for one in owners)


def around(structure: Structure, attention: str) -> list[str]:
    """The names of the blocks that use this attention."""
    inner = structure.find(attention)
    # One of the two norms may be used twice, by mistake, and the other one never.
    blocks = [one for one in block_like(structure) if norms_of(one, unused=True) > 1]
    return [] if inner is None else [one.name for one in blocks if one.uses(inner)]


def norms_of(definition: Definition, *, unused: bool = False) -> int:
    """How many norms a class makes itself and uses, or makes alone; those of queries and keys are part of an attention."""
    of_heads = re.compile(r"^(?:q|k|v|qk|query|key)_?(?:norm|ln|layer_?norm)|(?:norm|ln)_?(?:q|k|v|qk)$", re.IGNORECASE)
    code = code_of(definition.text)
    least = 0 if unused else 1
    used = [name for name in definition.layers if len(re.findall(rf"\bself\.{re.escape(name)}\b", code)) > least]
    return sum(_is_norm(definition.layers[name]) for name in used if not of_heads.search(name))


def _is_norm(maker: str) -> bool:
    return re.search(r"norm|^ln$", _NO_NORMS.sub("", maker), re.IGNORECASE) is not None


def with_layers(
    reading: Reading, shapes: Shapes, definition: Definition, structure: Structure, contract: Contract
) -> list[Reading] | str:
    """The reading with the places of norms, attention and mlp, once for each way; or why it has none."""
    norms = _norms(shapes, definition, structure)
    if len(norms) != 2:
        many = "no norm" if not norms else "one norm" if len(norms) == 1 else f"{len(norms)} norms"
        return f"it has {many}, and a block of the kata has two with parameters"
    mlp = _mlp(shapes)
    if len(mlp) not in (2, 3):
        return f"its mlp has {len(mlp)} layers ({', '.join(mlp) or 'none'}), and that of the kata has two"
    made = {name: maker for part in structure.reach(definition) for name, maker in part.layers.items()}
    places = dict(_of_norms(norms, definition, structure)) | dict(_of_mlp(mlp, shapes, made))
    if len(places) != 2 + len(mlp):
        return f"the shapes of its mlp do not say which layer is the first ({', '.join(mlp)})"
    wide, width = max(side for path in mlp for side in shapes[path][:2]), int(LOOK["E"])
    if "M" not in {value for _, value in reading.sizes} and wide % width == 0:
        reading = replace(reading, mlp_ratio=wide // width)
    elif wide > LOOK["M"]:  # it computes a width of its own
        of_mlp = [role for role in ("mlp_in", "mlp_gate", "mlp_out") if role in places]
        places |= {role: replace(places[role], layout="wider") for role in of_mlp if places[role].layout == "rows"}
    taken = {path.rpartition(".")[0] for path in (*(weight for weight, _ in norms.values()), *mlp)}
    rest = {path: shape for path, shape in shapes.items() if path.rpartition(".")[0] not in taken}
    found = layers.with_layers(with_flags(reading, dict(places)), rest, definition, structure, contract)
    return found or f"its parameters do not say which are q, k and v ({', '.join(list(rest)[:8])})"


def _norms(shapes: Shapes, definition: Definition, structure: Structure) -> dict[str, tuple[str, str]]:
    """The weight and the bias ("" for none) of each module that has vectors of the width and no matrix."""
    owners: dict[str, list[str]] = {}
    for path in shapes:
        owners.setdefault(path.rpartition(".")[0], []).append(path)
    found = {}
    for owner, paths in owners.items():
        if not all(shapes[path] == (LOOK["E"],) for path in paths):
            continue
        named = {path.rpartition(".")[2].lower(): path for path in paths}
        weight = next((named[name] for name in _SCALES if name in named), "")
        if weight and owner:
            found[owner] = (weight, next((named[name] for name in _SHIFTS if name in named), ""))
    order = layers.creation_order(list(found), definition, structure)
    return {owner: found[owner] for owner in order}


def _of_norms(
    norms: dict[str, tuple[str, str]], definition: Definition, structure: Structure
) -> Iterator[tuple[str, Layer]]:
    """By name, where the names tell the two apart; else in the order in which they are made."""
    one, other = norms
    said = [2 if _SECOND.search(name) else 1 if _FIRST.search(name) else 0 for name in (one, other)]
    in_a_list = all(name.rpartition(".")[2].isdecimal() for name in norms)  # in its order
    if said in ([2, 1], [2, 0], [0, 1]) and not in_a_list:
        one, other = other, one
    for role, owner in (("norm1", one), ("norm2", other)):
        weight, bias = norms[owner]
        yield role, Layer(weight=weight, bias=bias)


def _mlp(shapes: Shapes) -> list[str]:
    """The matrices between the width and another size, that of no part of an attention."""
    E = LOOK["E"]
    of_attention = {E, LOOK["D"], 2 * E, 3 * E, LOOK["H"]}

    def matrix(path: str) -> tuple[int, ...]:
        shape = shapes[path]
        return shape[:2] if len(shape) == 2 or (len(shape) == 3 and shape[-1] == 1) else ()

    found = [path for path in shapes if E in matrix(path) and set(matrix(path)) - of_attention]
    if found:
        return found
    named = re.compile(r"mlp|ff|feed|fc|linear_?[12]|lin[12]|dense|net\.\d", re.IGNORECASE)
    return [path for path in shapes if matrix(path) and named.search(path) and "att" not in path.lower()]


def _of_mlp(mlp: list[str], shapes: Shapes, made: dict[str, str]) -> Iterator[tuple[str, Layer]]:
    """By their shapes. Of three layers two are alike and first, side by side: one of them is the gate of the other."""
    alike = [path for path in mlp if sum(shapes[other] == shapes[path] for other in mlp) == 2] if len(mlp) == 3 else []
    for path in mlp:
        shape = shapes[path]
        columns = made.get(path.removesuffix(".weight").rpartition(".")[2]) == "Conv1D" or not path.endswith(".weight")
        if alike:
            columns = shapes[alike[0]][0] == LOOK["E"]
        layout = "conv" if len(shape) == 3 else "columns" if columns else "rows"
        first = path in alike if alike else shape[1 if layout != "columns" else 0] == LOOK["E"]
        if shape[0] == shape[1]:
            first = path == mlp[0]
        bias = re.sub(r"weight$", "bias", path)
        role = "mlp_out" if not first else "mlp_gate" if path in alike[1:] else "mlp_in"
        yield role, Layer(weight=path, bias=bias if bias in set(shapes) - {path} else "", layout=layout)
