"""Why code that fails, and that no mistake explains, gets no verdict: what says that it is meant to compute something else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attn_kata.diagnosis.outcomes import tensors
from attn_kata.readings import advice
from attn_kata.readings.candidates import arguments
from attn_kata.readings.reading import Reading
from attn_kata.readings.searching import certain, one_head
from attn_kata.readings.searching.behaviour import Ranked, partly
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.packages import is_missing
from attn_kata.readings.source.structure import code_of

if TYPE_CHECKING:
    from attn_kata.readings.searching.definition_search import DefinitionSearch

RAISES = "every call that was tried raises"

_SIZES = ("E", "H", "D", "C", "I", "V")

# Terms of position inside of an attention.
_PLACES = re.compile(r"\bsin\(|\bsinus|\brel(?:ative)?_?pos|\bpos(?:ition(?:al)?)?_?(?:emb|enc|bias)|alibi", re.I)

# Terms of an attention that sees near tokens only.
_NEIGHBOURS = re.compile(r"sliding|window_size|local_att|neighbou?rhood", re.I)


# Terms of attentions that are not softmax(q k^T) v over all keys.
_OTHER_KINDS = re.compile(
    r"\blsh|bucket|hashes|linformer|performer|nystrom|talking|sinkhorn|kernel_fn|feature_map|entmax|sparsemax"
    r"|mask[\w.()]*\[[^\]\n]*::"  # a mask with holes
    r"|soft_?cap|logit_?cap|\bgat(?:e|es|ing)\b|gate_?proj|g_proj|\btop_?k\b|\w*norm\w*\(\s*(?:q|k|quer(?:y|ies)|keys?)\b",
    re.I,
)
# Into three, by a size among others: q, k and v may lie in blocks, head by head or in turn.
_CUTS = re.compile(r"(?:view|reshape|unflatten)\([^)]*\b3\b[^)]*\)|rearrange\(|\[\s*(?:\.\.\.|:)\s*,.*::\s*3\s*\]")
_IN_BLOCKS = re.compile(
    r"(?i)\b3\s*,\s*(?:self\.)?(?:\w*heads?\w*|h)\s*,"  # view(B, T, 3, heads, -1)
    r"|self\.\w+\(\s*\w+\s*\)\s*\.chunk\(\s*3\b"  # to_qkv(x).chunk(3, dim=-1)
)
_NORMS = re.compile(r"(?i)(?:^|[._])(?:q|k|query|key)_?(?:layer_?)?(?:norm|ln)$")
_SPLITS = re.compile(r"\.(?:view|reshape|unflatten)\(|rearrange")
_MORE_THAN_LINEAR = re.compile(r"round\(|clamp|quant|\bsign\(|norm\(|lora|gelu|relu|tanh|sigmoid|dropout", re.I)


def of_failure(one: DefinitionSearch, ranked: Ranked) -> str:
    """Why a failure of code that no mistake explains would be no verdict; "" where it is one."""
    if not one.sizes_fit and ".0." in ranked.reading.q.weight:
        return "each head is as wide as x, but the kata splits that width among the heads"
    if not ranked.answers:
        masked = ranked.reading.mask != "none"
        if certain.returns_nothing(one.definition) or certain.raises(ranked.reading, one.search, one.definition):
            return ""
        if one_head.raised_by_several(one.search, ranked.reading) is not None:
            return ""
        why = one.search.why([ranked.reading], one.search.masked if masked else one.search.unmasked)
        return f"{advice.RAISES_WITH_MASK if masked else RAISES}{why}{_lacking(one)}"
    if one.masked_raises and ranked.reading.mask == "none":
        return one.masked_raises
    roles = () if one.contract.has_score else ("q", "k", "v")
    lacking = [role for role in roles if role in one.contract.layers and not ranked.reading.layer(role).weight]
    if lacking:
        return f"its parameters do not say which are q, k and v (there is none for {lacking[0]})"
    one_width = one.contract.is_cross and one.has_one_width(ranked.reading)
    if one_width and partly(one.search.unmasked(ranked.reading)):  # the kata's context has a width of its own
        return f"it has one width for x and context, and raises{one.search.why([ranked.reading])}"
    built = {value for _, value in ranked.reading.sizes}
    may_split = not ranked.reading.one_head or _SPLITS.search(one.code) is not None
    if one.contract.has_heads and "H" not in built and may_split:
        return "nothing that it is built with says how many heads it has"
    if returned := _other_tokens(one, ranked.reading):
        return returned
    if one.further:
        return f"it computes with {', '.join(one.further[:3])}, which the kata does not have"
    if _PLACES.search(one.code) and not ranked.reading.unturned:
        return "it seems to use positions inside, which the kata does not have"
    if kind := of_kind(one):
        return kind
    may_be_cut = _CUTS.search(one.code) is not None and _IN_BLOCKS.search(one.code) is None
    if ranked.reading.fused and may_be_cut and "fused" not in one.given:
        return (
            "no known mistake explains its numbers, and its layer for several of q, k and v may be cut in another way"
        )
    if maker := _layers_that_do_more(one, ranked.reading):
        return f"its layers are made by {maker}, which does more than a linear layer"
    sizes = [name.rpartition(".")[2] for name, value in ranked.reading.build if value in _SIZES]
    text = one.text
    if one.sizes_fit and all(vocabulary.size_in(name, text) is not None for name in sizes):
        return ""
    return (
        "no known mistake explains its numbers, and it may be built with wrong sizes: "
        "its names do not say how it is to be built"
    )


def _lacking(one: DefinitionSearch) -> str:
    """Which packages it uses that are not here, and that may be why it raises; "" for none."""
    reads = {name for part in one.search.structure.reach(one.definition) for name in part.reads}
    lacks = {package for name, package in one.search.structure.imports.items() if name in reads and is_missing(package)}
    return f". It uses {', '.join(sorted(lacks))}, not installed here" if lacks else ""


def of_kind(one: DefinitionSearch) -> str:
    """That its words speak of another kind of attention; "" where they do not."""
    if _NEIGHBOURS.search(one.code):
        return "it seems to attend to a window of near tokens, which the kata does not ask for"
    kind = _OTHER_KINDS.search(one.code)
    return f"it seems to be another kind of attention ('{kind[0]}'), which the kata does not ask for" if kind else ""


def of_norms(reading: Reading) -> str:
    """That it normalises q and k, where a scale of 1 may be meant; "" where it does not."""
    norms = [name for name in reading.bypassed if _NORMS.search(name)]
    return f"it normalises q and k ({', '.join(norms)}), which the kata does not do" if norms else ""


def of_far_tokens(one: DefinitionSearch, reading: Reading) -> list[str]:
    """A note that what a window may hide was not tried: the inputs of a grading may be shorter than it."""
    is_whole = arguments.WINDOW in dict(reading.build).values()
    near = None if is_whole else _NEIGHBOURS.search(one.code)
    return (
        [f"It names a window of near tokens ('{near[0]}'). Inputs longer than its window are not tried"] if near else []
    )


def of_other_path(one: DefinitionSearch, reading: Reading) -> list[str]:
    """A note for a flag that has no default and is off, or that scales and is off by default: the other way was not tried."""
    asked = {parameter.name for parameter in one.definition.build if parameter.default is None}
    off = [name for name, value in reading.build if value == "False" and name in asked]
    read = [
        name
        for name in off
        if re.search(rf"\bif\b[^\n]*\b{re.escape(name)}\b|\b{re.escape(name)}\b[^\n]* else ", one.code)
    ]
    untried = [f"It is built with {name} = False. What it does with {name} = True is not tried" for name in read]
    by_default = {parameter.name: parameter.default for parameter in one.definition.build}
    scaled = [name for name, value in reading.build if value == "True" and by_default.get(name) == "False"]
    return untried + [
        f"It is built with {name} = True, and its default is {name} = False. If it is used like that, this is scale.missing"
        for name in scaled
        if "scal" in name.lower()
    ]


def _layers_that_do_more(one: DefinitionSearch, reading: Reading) -> str:
    """The class of the source, or of a missing import, that makes its layers and does more than multiply; or ""."""
    structure = one.search.structure
    owners = {reading.layer(role).weight.rpartition(".")[0] for role in ("q", "k", "v", "o")} - {""}
    makers = {made for path, made, _ in structure.parts(one.definition) if path in owners}
    for maker in sorted(makers):
        inner = structure.find(maker)
        if maker in structure.imports and structure.imports[maker].partition(".")[0] != "torch":
            return maker
        if inner is not None and _MORE_THAN_LINEAR.search(code_of(inner.reached)):
            return maker
    return ""


def _other_tokens(one: DefinitionSearch, reading: Reading) -> str:
    """That it returns no new vector for each token: one for all of them, or some as they are; "" where it does."""
    if not one.contract.is_module or one.contract.has_score:
        return ""
    found = []
    handed_on = []
    for _, asked in one.search.unmasked(reading):
        for call, answer in zip(asked.calls, asked.answers, strict=True):
            x = call.probe.args[0]
            given = tuple(x.shape)
            out = tensors(answer.output)[0] if answer.output is not None else None
            got = tuple(out.shape) if out is not None else ()
            if len(got) == len(given) > 2:
                found.append((given, got))
            if out is not None and got == given and given[-2] > 1 and given[-1] > 1:
                handed_on.append((x == out).all(-1).flatten(0, -2).all(0).sum().item())  # (..., T, E): places
    if handed_on and all(handed_on):
        return "it returns some tokens of x as they are, and the kata's attention returns a new vector for each token"
    other = [
        (given, got)
        for given, got in found
        if given[-2] != 1 and got[-2] != given[-2] and (*got[:-2], got[-1]) == (*given[:-2], given[-1])
    ]
    if not other or len(other) < len([given for given, _ in found if given[-2] != 1]):
        return ""
    return f"it returns {other[0][1]} for {other[0][0]}, and the kata's attention returns a vector for each token"
