"""Which kata code by other names is nearest to, told by its structure. Loads no torch and runs nothing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

from attn_kata import catalog
from attn_kata.readings import contract
from attn_kata.readings.candidates import (
    blocks,
    builders,
    calls,
    head_counts,
    padding_builders,
    roles,
    rotations,
    scores,
)
from attn_kata.readings.source import methods, structure, syntax, vocabulary
from attn_kata.readings.source.structure import Definition, Structure

BLOCK = "transformer_block"
WITH_HEADS = "mha"  # which takes code of one head, and any mask


def kata_of(source: bytes, name: str | None = None) -> tuple[str, str] | None:
    """The kata's slug and a sentence that says why; None where nothing looks like an attention. `name` is the class to take."""
    every = itertools.chain(katas_of(source, name), methods_of(source) if name is None else ())
    return next(((slug, said) for slug, _, said in every), None)


def katas_of(source: bytes, name: str | None = None) -> Iterator[tuple[str, str, str]]:
    """For each definition that looks like an attention its kata, its name and a sentence, the likeliest first.

    `name` is the only one that is looked at; it may be a method, as `Decoder.attend`.
    """
    of_method = None if name is None else methods.alone(source, name)
    if name is not None and of_method is not None:
        for slug, _, _ in katas_of(of_method, name.partition(".")[0]):
            yield slug, name, f"The method {name} looks like {slug}, so it is read as {slug}."
        return
    found = syntax.of_source(source)
    every = blocks.attentions_first(found)
    if name is not None:
        named = found.find(found.meant(name))
        every = [] if named is None else [named]
    # A file with an attention and a block is graded by its attention first, unless the block is named.
    whole = blocks.whole_blocks(found)
    every = every or whole[:1]  # the attention that it uses is in another file
    less_near: list[tuple[str, str, str]] = []
    for definition in every:
        near = []
        for slug in [BLOCK] if definition in whole else _nearest(definition, found):
            known = contract.of_kata(catalog.find(slug).folder) if slug in catalog.slugs() else None
            if known is not None and calls.fits(definition, known):
                kind = "class" if definition.is_class else "function"
                said = f"The {kind} {definition.name} looks like {slug}, so it is read as {slug}."
                near.append((slug, definition.name, said))
        yield from near[:1]
        if near and near[0][0] != "gqa":  # with as many groups as heads, what is wrong in the groups would not be seen
            less_near += near[1:]
    only = found if name is None or not every else replace(found, definitions=tuple(every))
    mask = builders.find(only)
    if mask is not None and (not every or name is not None) and "causal_mask" in catalog.slugs():
        yield "causal_mask", mask.name, f"The function {mask.name} builds a causal mask, so it is read as causal_mask."
    padding = padding_builders.find(only)
    if padding is not None and (not every or name is not None) and "padding_mask" in catalog.slugs():
        said = f"The function {padding.name} builds a mask of padding, so it is read as padding_mask."
        yield "padding_mask", padding.name, said
    turning = rotations.find(found)
    is_meant = (not every and mask is None) or name in [one.name for one in turning]
    if turning and is_meant and "rope" in catalog.slugs():
        yield "rope", turning[0].name, f"{turning[0].name} turns vectors by their positions, so it is read as rope."
    yield from less_near


def methods_of(source: bytes) -> Iterator[tuple[str, str, str]]:
    """The same for each method that may be an attention by itself."""
    for name in methods.of(source):
        yield from itertools.islice(katas_of(source, name), 1)


# A layer that gives one number, also a lazy one.
_TO_ONE = r"Linear\([^()]*,\s*(?:out_features\s*=\s*)?1\b|LazyLinear\(\s*(?:out_features\s*=\s*)?1\b"


def _scores(definition: Definition, text: str) -> list[str]:
    """The katas with a learned score that it may be: one of a query and keys, without heads."""
    given = scores.inputs(definition)
    # Without the lines of the first weights.
    text = re.sub(r"(?m)^\s*(?:self\.)?(?:std\w*|bound|scale_init|init\w*)\s*=.*$|^.*\binit\.\w+\(.*$", "", text)
    crosses = {"q", "k"} <= set(given.values()) and not re.search(
        r"num_?heads|n_?heads?\b|nhead|heads?_?(?:count|num)|self\.heads?\b", text
    )
    crosses = crosses and "H" not in [vocabulary.size_in(one.name, text) for one in definition.build]
    pools = set(given.values()) - {"mask"} == {"k"} and not structure.has_layers_of_attention(definition)
    if pools and _pools_by_a_vector(definition, text):
        return ["additive_attention"]
    named = re.search(
        r"bahdanau|luong|additive|multiplicative|bilinear|[\"']general[\"']", definition.text, re.IGNORECASE
    )
    if scores.layers_after(definition):  # they have no part in the score
        text = scores.with_softmax(text, definition).rpartition("softmax")[0]
    has_vector = re.search(rf"{_TO_ONE}|Parameter\(|\.(?!view)[vV]\w*\(", text) is not None
    squashes = re.search(r"\btanh\b", text, re.IGNORECASE) is not None
    # ReLU in the place of tanh, as in code for image captions; with layers alone it may be any network's.
    squashes |= has_vector and re.search(r"\brelu\b", text, re.IGNORECASE) is not None
    # A query and keys, and one matrix alone: no layer for each of q, k and v.
    made = [one for one in definition.layers.values() if one in ("Linear", "Parameter", "Bilinear")]
    alone = (
        len(made) in (1, 2)
        and "softmax" in definition.text.lower()
        and sorted(set(given.values()) - {"mask"}) == ["k", "q"]
    )
    joined = has_vector and re.search(r"\bcat\(", text) is not None  # a query and a key side by side
    scaled = re.search(r"math\.sqrt", text) is not None and named is None and len(made) != 1
    crosses = crosses and not scaled
    if not crosses or not (named or squashes or alone or joined):
        return []
    additive = has_vector and (
        squashes or joined or (named is not None and re.search("bahd|addi", named[0], re.IGNORECASE))
    )
    return ["additive_attention"] if additive else ["multiplicative_attention"]


def _pools_by_a_vector(definition: Definition, text: str) -> bool:
    """Whether a class without heads compares its one input with a vector: tanh(W x + b) · v, as for classifying texts."""
    made = [one for one in definition.layers.values() if one in ("Linear", "Parameter")]
    has_heads = "H" in [vocabulary.size_in(one.name, text) for one in definition.build]
    has_vector = re.search(rf"{_TO_ONE}|Parameter\(", text) is not None
    squashes = re.search(r"\btanh\b", text, re.IGNORECASE) is not None
    return 2 <= len(made) <= 3 and has_vector and squashes and not has_heads and "softmax" in definition.text.lower()


def _is_whole(definition: Definition) -> bool:
    """Whether a class has layers for q, k and v, and one for the output."""
    roles = {vocabulary.role_of(name) for name, made in definition.layers.items() if made == "Linear"}
    return {"q", "k", "v", "o"} <= roles


def _is_plain_product(definition: Definition, text: str) -> bool:
    """Whether a class without parameters mixes keys by their products with a query: Luong's dot, also scaled."""
    takes_two = sorted(set(scores.inputs(definition).values()) - {"mask"}) == ["k", "q"]
    return takes_two and "softmax" in text


# A view of something with a number of heads, its arguments in one line or several: `q.contiguous().view(B, T, self.heads, -1)`.
_A_SPLIT = re.compile(
    r"(\w+)(?:\.\w+\(\))*\.(?:view|reshape|unflatten|chunk|split)"
    r"\((?:[^()]|\([^()]*\))*?(?:\b(?:self\.)?(?:\w*heads?\w*|n?h)\b|\*new_\w*shape)|(rearrange)\(",
    re.IGNORECASE,
)
_OF_SCORES = re.compile(r"mask|scor|att|weight|energ|prob|sim|dots|logits|^[saw]$", re.IGNORECASE)


def _splits_heads(text: str) -> bool:
    """Whether something that is no mask and no score is viewed with a number of heads."""
    return any(split[2] or not _OF_SCORES.search(split[1]) for split in _A_SPLIT.finditer(text))


def _nearest(definition: Definition, found: Structure) -> list[str]:
    """The katas that it may be, the nearest first."""
    text = structure.without_log_softmax(structure.code_of(found.text(definition)))
    inputs = roles.call_inputs(definition)
    given = [what for what in inputs.values() if what != "mask"]
    layered = re.search(r"\b(?:Linear|Parameter|Conv1[dD])\(", text) is not None
    layered = layered or structure.has_layers_of_attention(definition)
    if definition.is_class and not layered and _is_plain_product(definition, text):
        return ["multiplicative_attention"]
    if not definition.is_class or not layered:
        # What splits and joins heads is more than a product of q, k and v, which one head alone would not show.
        splits = definition.is_class and "H" in [vocabulary.size_in(one.name, text) for one in definition.build]
        splits = splits and _splits_heads(text)
        return ["qkv_attention"] if splits else ["sdpa"]
    if _scores(definition, text):
        return _scores(definition, text)
    numbers = [one.name for one in definition.build if one.default not in ("True", "False")]  # one_kv_head=False
    sizes = [vocabulary.size_in(name, text) for name in numbers]
    reads = {name for one in found.reach(definition) for name in one.reads}
    sizes += [vocabulary.size_in(part, text) for part in (*definition.config_names, *(found.globals & reads))]
    heads = (
        bool({"H", "G"} & set(sizes))
        or re.search(r"num_?(?:\w+_)?heads|n_?heads?\b|heads?_?(?:count|num)|self\.heads?\b|ModuleList|头", text)
        is not None
    )
    said_several = re.search("(?i)multi|heads|mha", definition.name) is not None
    heads = heads and (said_several or not head_counts.is_one_head(text))
    required = [inputs[one.name] for one in definition.call if one.name in inputs and one.default is None]
    crosses = "context" in required or ("context" in given and "cross" in definition.name.lower())
    # A class of that name that takes one input alone attends to that.
    several = len([one for one in definition.call if inputs.get(one.name) != "mask"]) > 1
    crosses = crosses or (several and "cross" in definition.name.lower())
    # A config has the number of key-value heads of a whole family, which this code may not read.
    computes = "\n".join(one.text for one in found.reach(definition) if not one.is_class or "def forward" in one.text)
    if (
        heads
        and not crosses
        and (
            {"G", "H//G"} & set(sizes)
            or re.search(r"repeat_kv|n_kv_head|num_kv_head|num_key_value_head", computes)
            or head_counts.one_group(text)
        )
    ):
        return ["gqa", "mha"]
    # Three inputs: only qkv_attention tells which of them goes to which layer.
    if heads and not crosses and sum(what in ("q", "k", "v") for what in required) == 3:
        return ["qkv_attention", "mha"]
    if heads:
        return ["cross_attention", "mha"] if crosses else ["mha"]
    # One head with a mask and an output layer is all that mha asks for; that of self_attention has neither.
    if not crosses and "mask" in inputs.values() and _is_whole(definition):
        return ["mha", "self_attention"]
    return ["cross_attention"] if crosses else ["self_attention", "mha"]
