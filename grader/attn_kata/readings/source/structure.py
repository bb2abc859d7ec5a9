"""What the syntax of a source tells about the attention in it. Nothing of it runs."""

from __future__ import annotations

import ast
import itertools
import re
import textwrap
from dataclasses import dataclass, field

from attn_kata.readings.source import held_weights, vocabulary

_MARKS = re.compile(r"softmax|\.exp\(|attn|attention|matmul|einsum|bmm|scaled_dot|@", re.IGNORECASE)
_WHOLE = re.compile(
    r"(?:block|decoder|encoder|transformer|model|gpt|bert|vit|net|network|config|dataset|lm)$|layers?$|with_?(?:ffn?|mlp|feed)",
    re.IGNORECASE,
)
_ATTENTION = re.compile(r"att[en]|mhs?a", re.IGNORECASE)
_JOINS = re.compile(r"multi_?head|mhs?a", re.IGNORECASE)
_AROUND = re.compile(
    r"norm|[gr]elu|silu|swish|feed|mlp|ffn?\b", re.IGNORECASE
)  # what is around an attention in a block
_PRODUCTS = re.compile(r"softmax|matmul|bmm|einsum|[\w)\]]\s*@\s*[\w(]", re.IGNORECASE)
_RECURRENT = frozenset(("GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"))
# A function that does something beside an attention: `count_flops_attn`, `plot_attention`.
_OTHER_WORK = re.compile(
    r"^_?(?:test|count|plot|show|draw|visuali[sz]e|bench(?:mark)?|profile|demo|main|train|load|save|convert|check|compare|print"
    r"|log|register|replace|patch)(?:_|$)|flops",
    re.IGNORECASE,
)

_OTHER_PATH = re.compile(r"flash|sdpa|xformers|alibi|relative|local|window|sparse|rotary|rope", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of a function: its name, whether it has a default, and its annotation and default as text."""

    name: str
    default: str | None
    annotation: str


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A class or function at the top level of a source. For a class, what it inherits within the source counts as its own."""

    name: str
    is_class: bool
    lines: tuple[int, int]
    text: str  # with comments and docstrings
    reached: str  # the same without the methods that its call does not use
    build: tuple[Parameter, ...]  # of __init__, without self
    misspelt: str  # a method that is meant to be __init__, as _init_, or forward, as foward; or ""
    call: tuple[Parameter, ...]  # of forward, without self, and then of `before`; of the function itself
    before: tuple[
        str, ...
    ]  # a method that must be called before forward, as it takes the keys, and its parameters; or ()
    config: str  # the constructor's parameter that is a config object, or ""
    config_names: tuple[str, ...]  # what is asked of it; of what is asked of a part of it, also that part
    config_parts: tuple[str, ...]  # the parts of it that are asked in turn: config.model.n_embd
    global_configs: tuple[tuple[str, str], ...]  # config objects at module level, and what is asked of them
    layers: dict[str, str]  # the attributes that __init__ sets, in order: name -> the function that makes it
    reads: frozenset[str]  # every name in it
    unpacked: tuple[tuple[str, ...], ...]  # the targets of each unpacking of three or two, in order
    returned: tuple[tuple[str, ...], ...]  # the names in each returned tuple of `forward`
    sizes: tuple[tuple[str, ...], ...]  # the targets of each unpacking of a shape

    def uses(self, other: Definition) -> bool:
        """Whether it names the other definition."""
        return other.name in self.reads and other.name != self.name


@dataclass(frozen=True, kw_only=True)
class Structure:
    """The definitions of a source, and the numbers that it sets at module level, or reads there and sets nowhere."""

    definitions: tuple[Definition, ...] = ()
    globals: frozenset[str] = frozenset()
    computed: frozenset[str] = frozenset()  # those that it computes, other than by a division: d_k = 2 * width // heads
    unset: frozenset[str] = frozenset()  # names that functions read, and that nothing sets or imports
    never_set: frozenset[str] = frozenset()  # those that no other cell can set, as all sizes are arguments
    imports: dict[str, str] = field(default_factory=dict)  # name -> the package that it comes from
    makers: dict[str, str] = field(default_factory=dict)  # name -> its line: Norm = partial(nn.LayerNorm, eps=1e-6)
    assumed: tuple[str, ...] = ()  # usual names, as torch and nn, that a source without any import uses
    begins: int = 0  # the line above which everything comes from other files, which the source imports

    @property
    def own(self) -> tuple[Definition, ...]:
        """The definitions of the file itself; all, where it has none but imports them."""
        return tuple(one for one in self.definitions if one.lines[0] > self.begins) or self.definitions

    def meant(self, name: str) -> str:
        """The name of what is read where this one is named: of a function that is given its weights, its module."""
        held = f"{name}{held_weights.SUFFIX}"
        return name if self.find(held) is None else held

    def find(self, name: str) -> Definition | None:
        """The definition with this name."""
        return next((one for one in self.definitions if one.name == name), None)

    def reach(self, definition: Definition) -> list[Definition]:
        """The definition and everything of the source that it uses, in the source's order."""
        seen, waiting = {definition.name}, [definition]
        while waiting:
            at = waiting.pop()
            for other in self.definitions:
                if other.name not in seen and at.uses(other):
                    seen.add(other.name)
                    waiting.append(other)
        return [one for one in self.definitions if one.name in seen]

    def line(self, number: int) -> str:
        """A line of the source, where it is one of a definition; else ""."""
        around = next((one for one in self.definitions if one.lines[0] <= number <= one.lines[1]), None)
        lines = [] if around is None else around.text.split("\n")
        place = 0 if around is None else number - around.lines[0]
        return lines[place] if place < len(lines) else ""

    def parts(self, definition: Definition, before: str = "", depth: int = 3) -> list[tuple[str, str, Definition]]:
        """The layers of a class and of its classes: path, maker and class of each; `*` for each of a list."""
        found = []
        for name, made in definition.layers.items():
            path = f"{before}{name}"
            found.append((path, made, definition))
            inner = self.find(made)
            if inner is not None and inner.name != definition.name and depth:
                for way in (f"{path}.", f"{path}.*."):
                    found += self.parts(inner, way, depth - 1)
        return found

    def text(self, definition: Definition) -> str:
        """The text of a definition and of all it uses, with the lines at module level that make its layers."""
        reach = self.reach(definition)
        makers = [line for name, line in self.makers.items() if any(name in one.reads for one in reach)]
        return "\n".join([*makers, *(one.text for one in reach)])

    def reached(self, definition: Definition) -> str:
        """The same without the methods that no call uses."""
        return "\n".join(one.reached for one in self.reach(definition))


def code_of(text: str) -> str:
    """The text without comments and docstrings: `1 / n_heads of it` in a comment makes no heads."""
    return re.sub(r"(?s)(?:^|(?<=\n))\s*[rR]?(\"{3}|'{3}).*?\1|#[^\n]*", "", text)


_STATEMENT = re.compile(r"#\s*[\w.]+(?:, ?[\w.]+)*\s*[-+*]?=\s*(?:[\w.]+[(\[+*]|\w+\s*[-+*@]\s*\w)")


def without_code_in_comments(text: str) -> str:
    """The text without comments that have a statement among them: `# Pre-norm`, then `# x = x + self.attend(self.norm(x))`."""
    kept: list[str] = []
    for is_comment, lines in itertools.groupby(text.split("\n"), key=lambda line: line.lstrip().startswith("#")):
        group = list(lines)
        kept += [] if is_comment and any(_STATEMENT.match(line.lstrip()) for line in group) else group
    return "\n".join(kept)


def tree_of(text: str) -> ast.Module:
    """A definition as a tree; an empty one where it cannot be parsed by itself, as with text at the first column."""
    try:
        return ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


def without_log_softmax(text: str) -> str:
    """The text without what a classifier ends with."""
    return re.sub(r"(?i)log_?softmax|self\.\w*softmax\w*", "", text) if re.search("(?i)log_?softmax", text) else text


def is_model(one: Definition) -> bool:
    """Whether a definition is a whole model, or a block, around an attention: by its name, or by layers of tokens or steps.

    A MultiHeadAttentionBlock that has the layers for q and k itself, or joins the heads, is the attention.
    """
    attends = _ATTENTION.search(one.name) is not None and _makes_q_and_k(one)
    joins = _JOINS.search(one.name) is not None and _AROUND.search(code_of(one.text)) is None
    named = _WHOLE.search(one.name) is not None and not attends and not joins
    if one.name.lower().endswith("layers") and "ModuleList" not in one.text:
        named = False  # one attention, by its layers
    # An attention that embeds has positions of its own, unless its name says model.
    embeds = "Embedding" in one.layers.values()
    embeds = embeds and (_ATTENTION.search(one.name) is None or re.search("(?i)model|network", one.name) is not None)
    return named or embeds or not _RECURRENT.isdisjoint(one.layers.values())


def is_named_attention(one: Definition) -> bool:
    """Whether the name of a definition says that it is an attention."""
    return re.search(r"att[en]|head|mhs?a|sdpa|qkv|注意", one.name, re.IGNORECASE) is not None


def stands_alone(part: Definition, whole: Definition) -> bool:
    """Whether a part is an attention without what uses it: the whole inherits from it, or only hands on what it gives."""
    inherits = re.search(rf"^class {re.escape(whole.name)}\([^)]*\b{re.escape(part.name)}\b", whole.text, re.MULTILINE)
    text = code_of(whole.text)
    of_heads = re.search(rf"ModuleList\([^)]*\b{re.escape(part.name)}\(", text)  # whose results the whole joins
    return inherits is not None or (_PRODUCTS.search(text) is None and of_heads is None)


def has_layers_of_attention(one: Definition) -> bool:
    """Whether a class, and no whole model, has layers for queries and keys, or one for both."""
    if not one.is_class or (is_model(one) and _ATTENTION.search(one.name) is None):  # MultiHeadAttentionLayer
        return False
    return _makes_q_and_k(one)


def _makes_q_and_k(one: Definition) -> bool:
    names = [name for name, made in one.layers.items() if not made.endswith("Norm")]
    roles = {vocabulary.role_of(name) for name in names}
    fused = r"qkv|c_attn|in_proj" + "|kv" * ("q" in roles)  # to_q beside to_kv
    return {"q", "k"} <= roles or any(re.search(fused, name.lower()) for name in names)


def _has_several_heads(one: Definition) -> bool:
    """Whether a class, and no whole model, makes q and k for several heads in its own layers, and has one for the output."""
    return _JOINS.search(one.name) is not None and _has_its_layers(one)


def _has_its_layers(one: Definition) -> bool:
    """Whether a class, and no whole model, makes q and k in its own layers, and has one for the output."""
    return not is_model(one) and _makes_q_and_k(one) and "o" in map(vocabulary.role_of, one.layers)


def _joins_single_heads(one: Definition) -> bool:
    """Whether a class only lays side by side what others give: a list of heads, and no layer for the output."""
    is_list = re.search(r"ModuleList\(", one.text) is not None and _PRODUCTS.search(code_of(one.text)) is None
    return is_list and "o" not in map(vocabulary.role_of, one.layers)


def _is_other_path(one: Definition, base: Definition) -> bool:
    """Whether a class is its base with a ready-made attention, LlamaFlashAttention2(LlamaAttention), or one of another kind."""
    of_base = re.search(rf"^class {re.escape(one.name)}\([^)]*\b{re.escape(base.name)}\b", one.text, re.MULTILINE)
    return of_base is not None and _OTHER_PATH.search(one.name) is not None


def attention_like(structure: Structure) -> list[Definition]:
    """The definitions that may be an attention, the likeliest first: those named so and using the others lead."""
    found = []
    for place, one in enumerate(structure.own):
        if not one.call or (one.is_class and not one.layers and not one.call):
            continue
        if not one.is_class and _OTHER_WORK.search(one.name):
            continue
        if not one.is_class and "mask" in one.name.lower() and "softmax" not in code_of(one.text):
            continue  # it makes a mask
        whole = without_log_softmax(structure.text(one))
        own = len(_MARKS.findall(one.text))
        if not re.search(
            r"(?i)softmax|\.exp\(|scaled_dot_product|MultiheadAttention|sigmoid|@|matmul|einsum|bmm|energ", whole
        ):
            continue
        named = is_named_attention(one)
        if not named and not has_layers_of_attention(one) and "softmax" not in without_log_softmax(one.text).lower():
            continue
        score = 4 * named + min(own, 4) - 6 * is_model(one)
        score += 2 * sum(
            one.uses(other) for other in structure.definitions if re.search("att|head", other.name, re.IGNORECASE)
        )
        score += 3 * one.is_class + 2 * (re.search(r"multi_?head|mhs?a", one.name, re.IGNORECASE) is not None)
        # What has no softmax may make q, k and v only; or it is an attention that lacks it.
        score -= 6 * (not one.is_class and re.search(r"(?i)softmax|\.exp\(|scaled_dot_product|sigmoid", whole) is None)
        score -= 8 * any(_is_other_path(one, base) for base in structure.definitions)
        found.append((-score, place, one))
    # Of several with their own layers, the plain one is meant, and no other kind.
    plain = [score for score, _, one in found if _has_its_layers(one) and not _OTHER_PATH.search(one.name)]
    for place, (score, at, one) in enumerate(found):
        if plain and _has_its_layers(one) and _OTHER_PATH.search(one.name):
            found[place] = max(score, min(plain) + 1), at, one
    # Beside an attention with several heads in its own layers, one that lays single heads side by side is a step on the way.
    several = [(score, one) for score, _, one in found if _has_several_heads(one)]
    for place, (score, at, one) in enumerate(found):
        beside = [other for other, each in several if not each.uses(one) and not one.uses(each)]
        if beside and _joins_single_heads(one):
            found[place] = max(score, *(other + 1 for other in beside)), at, one
    # Whoever uses another one is meant rather than the part; a whole model is not.
    for place, (score, at, one) in enumerate(found):
        around = [
            other for other, _, each in found if each.uses(one) and not is_model(each) and not _is_other_path(each, one)
        ]
        inside = [other for other, _, each in found if is_model(one) and one.uses(each)]
        found[place] = (
            max(score, *(other + 1 for other in (*around, *inside))) if around or inside else score,
            at,
            one,
        )
    return [one for _, _, one in sorted(found, key=lambda each: each[:2])]
