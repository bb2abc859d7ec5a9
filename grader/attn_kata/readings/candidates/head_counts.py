"""Whether code is one head, several, or several with one group of keys."""

from __future__ import annotations

import re

from attn_kata.readings.reading import Pairs
from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import code_of


def tells_of_heads(text: str) -> bool:
    """Whether the code has names of several heads: not of one, as AttentionHead and SingleHead, nor of its size."""
    names = set(re.findall(r"\w*head\w*", code_of(text), re.IGNORECASE))
    of_one = re.compile(
        r"\w*(?:[a-z](?<!ulti)(?<!um)Head|(?<!\bn)(?<!_n)(?<!num)(?<!ulti)_head|(?i:single|one)_?(?i:head)\w*)"
    )
    return any(not of_one.fullmatch(name) and vocabulary.size_of(name) != "D" for name in names)


_LAYERS_OF = re.compile(r"self\.(\w+)\s*=\s*(?:\w+\.)*Linear\(\s*[^,()]+,\s*(?:out_features\s*=\s*)?([^,()]+?)\s*[,)]")


def one_group(text: str) -> bool:
    """Whether the keys have the width of one head, and the queries do not: multi-query attention."""
    widths: dict[str, str] = {}
    for name, width in _LAYERS_OF.findall(text):
        plain = vocabulary.plain(name)
        role = "k" if "kv" in plain and "q" not in plain else vocabulary.role_of(name)
        widths.setdefault(role or "", re.sub(r"^2\s*\*\s*|\s*\*\s*2$|\b\w+\.", "", width))
    beside = re.search(
        r"Linear\([^()]*\+\s*2\s*\*\s*(?:\w+\.)*(\w+)\s*[,)]", text
    )  # q, and one head of keys and values
    if beside is not None and vocabulary.size_of(beside[1]) == "D":
        return True
    of_keys, of_queries = (vocabulary.size_of(widths.get(role, "")) for role in ("k", "q"))
    if widths.get("k") and re.sub("q(?:uery)?", "k", widths.get("q", "")) == re.sub("key", "k", widths["k"]):
        return False  # dim_q and dim_k: one width by two names
    of_all = of_queries not in ("D", None) or "*" in widths.get("q", "")
    return of_keys == "D" and "q" in widths and of_all


def is_one_head(text: str) -> bool:
    """Whether q and k have the width of one head, by its name or as x // heads, and nothing is split or joined."""
    widths = {vocabulary.role_of(name): width for name, width in _LAYERS_OF.findall(text)}
    of_one = [_is_of_one_head(widths.get(role, ""), text) for role in ("q", "k")]
    return all(of_one) and re.search(_SPLITS, text) is None


def _is_of_one_head(width: str, text: str) -> bool:
    """Whether a width is that of one head: by its name, as x // heads, or as a name that is set to that."""
    name = width.rpartition(".")[2]
    if "//" in width or vocabulary.size_of(name) == "D":
        return True
    return name.isidentifier() and re.search(rf"\b{name}\s*=\s*[\w.]+\s*//\s*[\w.]*head", text) is not None


_SPLITS = r"ModuleList|\.(?:view|reshape|unflatten|split|chunk|unfold)\(|rearrange|einsum|\b(?:cat|stack|split|chunk)\("


_TAKES = re.compile(
    r"\.(?:view|reshape|unflatten|unfold)\(|\b(?:split|chunk|narrow|tensor_split)\(|rearrange|einsum|\[[^\]\n]*:"
)


def takes_parts(text: str) -> bool:
    """Whether anything in the code can take one part of x for each head."""
    return _TAKES.search(code_of(text)) is not None


def as_one_of_heads(pairs: Pairs) -> Pairs:
    """The sizes of one head of several: the width is that of x, and as many heads share it as make keys of width D."""
    return tuple(
        (name, _OF_ONE_OF_HEADS.get(vocabulary.size_of(name.rpartition(".")[2]) or "", value)) for name, value in pairs
    )


_OF_ONE_OF_HEADS = {"H": "I//D", "E": "I"}
