"""A reading: how a piece of foreign code is understood. It is plain data, and prints as `--read KEY=VALUE` flags.

    entry         the class or function                                  entry=CausalSelfAttention
    build         the constructor's arguments, by symbol                 build=d_model=E,num_heads=H,config.n_embd=E
    globals       names at module level that it reads                    globals=n_embd=E,Config.d_k=D
    constants     attributes that its constructor sets to a number       constants=num_heads=H
    q k v o       where the parameters of a layer are, and their layout q=W_q:columns
    norm1 norm2 mlp_in mlp_gate mlp_out
                  those of a transformer block                           norm1=ln_1.weight
    fused         the order inside a shared layer                        fused=k,q,v or fused=by_head:q,k,v
    call          what each parameter of the call gets; masked is
                  whether there is a mask, qkv is (x, x, x), and
                  no_tokens is x without its tokens; zeros or ones of
                  a shape, with T tokens of x and S of the keys          call=query=x,key=x,value=x,mask=mask
                                                                         call=x=x,places=zeros(B,T,E)
    before        the method that is called first, and its parameters    before=compute_keys,keys
    mask          what True means: keep, hide, additive, lengths, none   mask=hide
    mask_type     its type: bool, int, float                             mask_type=int
    shape         the shape of the mask                                  shape=(B, 1, T, T)
    needs_mask    whether it cannot be called without a mask             needs_mask=yes
    causal        whether it always hides later keys                     causal=yes
    order         batch or time first; channels, (B, E, T), or image,
                  (B, E, T, 1), where the channels come before the places;
                  grid, (B, T, 1, E), an image with its channels last;
                  groups, (B, P, T, E), several sequences                order=time
    dims          how many dimensions q, k, v or x have: 2 for one sequence
                                                                         dims=2
    query         the shape of a query, of code that takes one at a time query=(B, E)
    returns       tensor, or the places in a tuple: output, weights      returns=0 or returns=0,1
                  in a dict or a dataclass, their names                  returns=out or returns=out,attn
                  where a learned score returns its weights alone        returns=weights, returns=weights:1
    bypassed      submodules that are no part of the attention: they
                  give back what they get                                bypassed=layer_norm
    rates         dropouts with a rate of their own, which get p; *.NAME
                  for those of this name anywhere                        rates=attention.dropout
    own_rate      whether it drops at a rate that nobody sets: off       own_rate=yes
    unturned      functions and submodules that turn by positions: off   unturned=apply_rotary_emb
    gates         numbers that begin at 0 and multiply the result: set to 1;
                  and what mixes the heads: set to the identity          gates=gamma
    angles        functions and submodules that make the angles for it   angles=precompute_freqs_cis
    caches        attributes that keep keys from call to call: emptied   caches=cache_k,cache_v
    square        whether it takes only as many queries as keys          square=yes
    off           attributes that are set to False                       off=flash
    conventions   what it does otherwise than the contract               conventions=relu
    residual      whether the input is added to the output               residual=yes
    no_output     whether its output layer is missing by mistake         no_output=yes
    one_group     whether it has one key-value head only                 one_group=yes
    one_head      whether it has one head only                           one_head=yes
    one_length    whether it is built anew for each length               one_length=yes
    one_sample    whether it takes a batch of one only                   one_sample=yes
    by_token      whether it is called with one token after the other,
                  as it keeps earlier keys; a parameter that takes back
                  what it returned gets cache: call=x=x,past=cache       by_token=yes
    cache         what the first call gets for its cache: a class of the
                  file that is made, or dict for {}                      cache=KVCache
    cache_build   the sizes that it is made with                         cache_build=max_len=L,n_heads=H
    chunks        how many it is called with after the first token       chunks=2
    registered    attributes that hold layers in a plain list, or
                  weights as plain tensors                               registered=heads
    multiple      what the size of a head must be a multiple of          multiple=8
    joins         whether a function returns its heads side by side      joins=yes
    processor     whether what it puts on a GPU stays on the processor   processor=yes
    unrounded     whether what it rounds stays as it is                  unrounded=yes
    lazy          the widths that its lazy layers get, in the order in
                  which they are made; the last one for the rest         lazy=E or lazy=C,I,D
    mlp_ratio     how many times as wide as x the mlp is                 mlp_ratio=4
    head_width    how wide a head is, where the code has a number        head_width=64
    narrow        how many times as wide as its queries x and values are narrow=8
    alike         whether values are as wide as keys, a context as x     alike=yes
    float32       whether it computes in float32 whatever it is given    float32=yes
    full_precision
                  whether what it casts to half precision stays as it is full_precision=yes
    hides_queries whether its mask of keys hides these queries too       hides_queries=yes
    builder       the function that builds its mask                      builder=subsequent_mask
    lengths       how many lengths that takes                            lengths=1
    table         what makes the angles of a rotation                    table=precompute_freqs_cis
    table_build table_call
                  how that is built, and how it is called                table_call=dim=D,end=L,theta=base
    positions     the shape of positions that a rotation takes           positions=(B, T)
    pairs         which columns turn together: neighbours or halves      pairs=halves
    sure          whether you are sure of the reading: then what no known
                  mistake explains is wrong, too                         sure=yes

Symbols: E width, H heads, G key-value heads, D size of a head, C width of the context, p dropout, L a length
(L+1 and L-1: one more, one less).
I//D is as many heads as share a width of I, for one of them. no_turn stands in for a rotation that a constructor must be given,
module for the one that calls a function, and linear for a layer (E, E) that it must be given.
Of a rotation: base, positions, places (L,) or places_of_sample (1, L), like (a tensor as long as the table), turns, cos, sin.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, fields, replace

from attn_kata.errors import UsageError

Pairs = tuple[tuple[str, str], ...]

ROLES = ("q", "k", "v", "o", "norm1", "norm2", "mlp_in", "mlp_gate", "mlp_out")
LAYOUTS = (
    *(
        "rows",
        "columns",
        "conv",
        "heads",
        "heads_columns",
        "columns_heads",
        "shared",
        "slices",
        "wide",
        "vector",
        "score",
    ),
    "wider",  # of an mlp: code has its own width there, and the contract's has no more
    *("left", "right"),  # of an output layer: the columns of the heads' result lie left or right of those of x
)
ARRANGEMENTS = ("blocks", "by_head", "innermost", "beside", "features")
_WIDTHS = ("E", "C", "I", "D", "V", "M")
ORDERS = ("batch", "time", "channels", "image", "grid", "groups")
CHANNELS_FIRST = ("channels", "image")
ONE_QUERY = ("(B, E)", "(B, 1, E)", "(1, B, E)")  # shapes of the query of code that takes one at a time
MASKS = ("keep", "hide", "additive", "lengths", "none")
MASK_TYPES = ("bool", "int", "float")
TIME_FIRST_SHAPES = ("(T, T, B)", "(T, B)")
# Shapes of a mask, from the most general on. "any": it broadcasts to the scores as it is.
SHAPES = (
    "any",
    "(B, H, T, T)",
    "(B, 1, T, T)",
    "(B, T, T)",
    "(B*H, T, T)",
    "(T, T)",
    "(B, 1, 1, T)",
    "(B, 1, T)",
    "(B, T)",
    *TIME_FIRST_SHAPES,
)
_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)?")
_VALUE = re.compile(
    r"[EHDCIVGMpLxqkv]|L[+-]1|H//G|I//D|(?:1/)?sqrt\(D\)|config|tokens_padded_by_\w+|lengths|max_len|context|mask|training|module"
    r"|(?:zeros|ones)\((?:[BTSEHD]|\d{1,4})(?:,(?:[BTSEHD]|\d{1,4})){0,5}\)"
    r"|\((?:[EHDL1]|\d+),(?:[EHDL1]|\d+)\)|query|key|value|qkv|cache|turns|cos|sin|angles|'[\w-]+'"
    r"|masked|positions|places(?:_of_sample)?|like|base|turns|device|dtype|nothing_dropped|no_tokens|no_turn|linear|logger|True|False|None|-?\d+(?:\.\d+)?(?:e-?\d+)?"
)
_PLACE = r"(?:\d{1,2}|[^\W\d]\w*)"
_PARAMETER = re.compile(r"(?:\*\.)?[^\W\d]\w*(?:\.(?:\w+|\*))*")


def is_path(text: str) -> bool:
    """Whether a text is the path of a parameter: names and numbers between dots, `*` for one per head."""
    return len(text) <= 200 and _PARAMETER.fullmatch(text) is not None


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Where the parameters of a layer are: the path of the weight, that of the bias or "", and how the weight is stored."""

    weight: str = ""
    bias: str = ""
    layout: str = "rows"

    def __str__(self) -> str:
        bias = f"+{self.bias}" if self.bias else ""
        return (self.weight + bias + (f":{self.layout}" if self.layout != "rows" else "")) or "none"

    @property
    def short(self) -> str:
        """As a person writes it: `c_attn.weight` without its bias."""
        return self.weight

    @classmethod
    def parsed(cls, text: str) -> Layer:
        """The layer of a flag. Raises ValueError."""
        if text == "none":
            return cls()
        where, _, layout = text.partition(":")
        weight, _, bias = where.partition("+")
        if not is_path(weight) or (bias and not is_path(bias)):
            raise ValueError(f"'{where}' is no path of a parameter, such as q_proj.weight or heads.*.query.weight")
        if (layout or "rows") not in LAYOUTS:
            raise ValueError(f"'{layout}' is no layout; there are {', '.join(LAYOUTS)}")
        return cls(weight=weight, bias=bias, layout=layout or "rows")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the code is understood. The module's docstring has the meaning of the fields; all are plain data."""

    kata: str
    entry: str
    is_class: bool
    build: Pairs = ()
    globals: Pairs = ()
    constants: Pairs = ()
    q: Layer = Layer()
    k: Layer = Layer()
    v: Layer = Layer()
    o: Layer = Layer()
    norm1: Layer = Layer()
    norm2: Layer = Layer()
    mlp_in: Layer = Layer()
    mlp_gate: Layer = Layer()
    mlp_out: Layer = Layer()
    fused: tuple[str, ...] = ()
    arrangement: str = "blocks"
    call: Pairs = ()
    before: tuple[str, ...] = ()
    mask: str = "none"
    mask_type: str = "bool"
    shape: str = "any"
    needs_mask: bool = False
    causal: bool = False
    order: str = "batch"
    dims: int = 0
    query: str = "(B, T, E)"
    returns: str = "tensor"
    bypassed: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()
    own_rate: bool = False
    unturned: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    angles: tuple[str, ...] = ()
    registered: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    conventions: tuple[str, ...] = ()
    square: bool = False
    off: tuple[str, ...] = ()
    residual: bool = False
    alike: bool = False
    one_group: bool = False
    one_head: bool = False
    one_length: bool = False
    one_sample: bool = False
    by_token: bool = False
    cache: str = ""
    cache_build: Pairs = ()
    chunks: int = 0
    multiple: int = 1
    joins: bool = False
    processor: bool = False
    unrounded: bool = False
    lazy: tuple[str, ...] = ()
    mlp_ratio: int = 0
    head_width: int = 0
    narrow: int = 0
    float32: bool = False
    full_precision: bool = False
    hides_queries: bool = False
    builder: str = ""
    lengths: int = 0
    table: str = ""
    table_build: Pairs = ()
    table_call: Pairs = ()
    positions: str = "any"
    pairs: str = "neighbours"
    no_output: bool = False
    sure: bool = False

    def layer(self, role: str) -> Layer:
        """The layer of a role: q, k, v or o."""
        found: Layer = getattr(self, role)
        return found

    @property
    def places(self) -> tuple[str, ...]:
        """The places in the tuple of what is taken, and of the weights where it has them; () for one tensor."""
        found = self.returns.removeprefix("weights:")
        return () if found in ("", "tensor", "weights") else tuple(found.split(","))

    def part(self, result: str, place: int = 0) -> str:
        """The text that takes one of its places out of a result; the result itself where it is one tensor."""
        if not self.places:
            return result
        name = self.places[place]
        return f"{result}[{name}]" if name.isdecimal() else f"_part({result}, {name!r})"

    @property
    def returns_weights(self) -> bool:
        """Whether the code returns the weights alone."""
        return self.returns.startswith("weights")

    @property
    def keys_are_values(self) -> bool:
        """Whether a call with keys takes no values of their own."""
        given = [value for _, value in self.call]
        is_learned = self.kata.endswith("_attention")  # a rotation takes q and k, and no values
        return self.is_class and is_learned and "k" in given and "v" not in given and not self.returns_weights

    @property
    def without_query(self) -> bool:
        """Whether the code of a learned score takes keys and no query: what it compares them with is a vector of its own."""
        given = [value for _, value in self.call]
        return self.keys_are_values and bool(self.v.weight) and "q" not in given and not self.q.weight

    @property
    def sizes(self) -> Pairs:
        """All that it is built with: arguments, names at module level, and numbers of its own."""
        return (*self.build, *self.globals, *self.constants)

    @property
    def drops(self) -> bool:
        """Whether the constructor takes the dropout probability."""
        return bool(self.rates) or any(value == "p" for _, value in self.sizes)

    @property
    def is_one_of_heads(self) -> bool:
        """Whether it is one head of several that share a width: its keys are as wide as x // heads."""
        return any(value == "I//D" for _, value in self.sizes)

    @property
    def filled(self) -> tuple[str, ...]:
        """The inputs of its call that get zeros or ones."""
        return tuple(name for name, value in self.call if value.startswith(("zeros(", "ones(")))

    @property
    def replaces_turns(self) -> bool:
        """Whether something stands in for a rotation of q and k, which turns nothing."""
        return bool(self.unturned) or any(value == "no_turn" for _, value in self.build)

    def flags(self) -> list[str]:
        """KEY=VALUE of everything that differs from an empty reading; `with_flags` reads them back."""
        empty = Reading(kata=self.kata, entry="", is_class=self.is_class)
        texts = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("kata", "is_class", "arrangement"):
                continue
            # What a search would find anew is shown always: the dimensions of a function's arguments, the shape of a mask.
            shown = field.name == "dims" and bool(self.call) and not self.k.weight
            shown = shown or (field.name == "mask" and self.by_token)
            shown = shown or (field.name == "shape" and self.mask not in ("none", "lengths") and not self.builder)
            if value == getattr(empty, field.name) and not shown:
                continue
            texts.append(f"{field.name}={self._text(field.name, value)}")
        return texts

    def _text(self, name: str, value: object) -> str:
        if name == "fused":
            order = ",".join(self.fused)
            return order if self.arrangement == "blocks" else f"{self.arrangement}:{order}"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, tuple):
            return ",".join("=".join(part) if isinstance(part, tuple) else str(part) for part in value)
        return str(value)


HELP = (__doc__ or "").partition("\n\n")[2]  # the keys, what they mean, and an example of each
KEYS = tuple(field.name for field in fields(Reading) if field.name not in ("kata", "is_class", "arrangement"))


def parse(flags: tuple[str, ...]) -> dict[str, object]:
    """The fields that flags set. Raises UsageError for an unknown key or value, with the ones that there are."""
    given: dict[str, object] = {}
    for flag in flags:
        key, equals, text = flag.partition("=")
        if not equals or key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, 1)
            meant = f" Did you mean '{near[0]}{equals or '='}{text or 'VALUE'}'?" if near else ""
            raise UsageError(
                f"--read '{flag}' is not KEY=VALUE with a key that is known.{meant}",
                next_step="attn-kata grade --read help lists the keys",
            )
        try:
            given.update(_value(key, text.strip()))
        except ValueError as problem:
            raise UsageError(f"--read '{flag}': {problem}.") from None
    return given


def with_flags(reading: Reading, given: dict[str, object]) -> Reading:
    """The reading with what flags have set."""
    return replace(reading, **given)  # type: ignore[arg-type]


def _value(key: str, text: str) -> dict[str, object]:
    if key in ROLES:
        return {key: Layer.parsed(text)}
    if key == "fused":
        arrangement, colon, order = text.rpartition(":")
        parts = tuple(order.replace(" ", "").split(","))
        if sorted(parts) not in (["k", "q", "v"], ["k", "v"], ["k", "q"]):
            raise ValueError("it is an order of q, k and v, such as k,q,v")
        return {"fused": parts, "arrangement": _one_of(arrangement, ARRANGEMENTS) if colon else "blocks"}
    if key in ("build", "cache_build", "globals", "constants", "call", "table_build", "table_call"):
        pairs = _pairs(text)
        dotted = [name for name, _ in pairs if "." in name]
        if key == "constants" and dotted:
            raise ValueError(
                f"'{dotted[0]}' is no attribute of the class itself; for one of a config: build=NAME.PART=E"
            )
        if key in ("globals", "constants") and "module" in dict(pairs).values():
            raise ValueError("'module' is no size; 'module' is what a call gives a function that asks for its module")
        return {key: pairs}
    if key in (
        "bypassed",
        "off",
        "rates",
        "unturned",
        "gates",
        "angles",
        "registered",
        "caches",
        "conventions",
        "before",
    ):
        names = tuple(part.strip() for part in text.split(",") if part.strip())
        if not all(map(is_path, names)):
            raise ValueError("it is one name or several, with commas")
        return {key: names}
    if key == "lazy":
        widths = tuple(part.strip() for part in text.split(","))
        if not set(widths) <= set(_WIDTHS):
            raise ValueError(f"it is one width or several, with commas: {', '.join(_WIDTHS)}")
        return {key: widths}
    if key in (
        "causal",
        "residual",
        "needs_mask",
        "square",
        "alike",
        "one_group",
        "one_head",
        "one_length",
        "no_output",
        "one_sample",
        "by_token",
        "joins",
        "processor",
        "unrounded",
        "float32",
        "full_precision",
        "hides_queries",
        "own_rate",
        "sure",
    ):
        return {key: _one_of(text, ("yes", "no")) == "yes"}
    choices = {"mask": MASKS, "mask_type": MASK_TYPES, "shape": SHAPES, "order": ORDERS}
    choices |= {"positions": ("any", "(B, T)", "(T,)"), "pairs": ("neighbours", "halves")}
    choices["query"] = ("(B, T, E)", *ONE_QUERY)
    if key in choices:
        return {key: _one_of(text, choices[key])}
    if key == "dims":
        return {key: int(_one_of(text, ("0", "2", "3", "4")))}
    if key == "returns" and re.fullmatch(rf"{_PLACE}(?:,{_PLACE})?|weights:{_PLACE}", text) is None:
        raise ValueError(
            "it is tensor, or the place of the output in the tuple: 0, 1, …; with that of the weights: 0,1; "
            "or weights, weights:0, weights:1, …; of a dict or a dataclass, a name instead of the place"
        )
    if key == "mlp_ratio":
        if re.fullmatch(r"\d{1,4}", text) is None:
            raise ValueError("it is a number, as 4, or 0 for an mlp whose width is given")
        return {key: int(text)}
    if key == "head_width":
        if re.fullmatch(r"\d{1,4}", text) is None:
            raise ValueError("it is a number, as 64, or 0 for heads whose width grows with that of x")
        return {key: int(text)}
    if key == "narrow":
        if re.fullmatch(r"\d{1,2}", text) is None:
            raise ValueError("it is a number, as 8, or 0 for queries that have a width of their own")
        return {key: int(text)}
    if key == "multiple":
        if re.fullmatch(r"[1-9]\d{0,2}", text) is None:
            raise ValueError("it is a number, as 8, or 1 for heads of any size")
        return {key: int(text)}
    if key == "chunks":
        return {key: int(_one_of(text, ("1", "2", "3")))}
    if key == "lengths":
        return {key: int(_one_of(text, ("1", "2")))}
    if not all(part.isidentifier() for part in text.split(".")) and key in ("entry", "builder", "table", "cache"):
        raise ValueError("it is the name of a class or function")
    return {key: text}


def _one_of(text: str, choices: tuple[str, ...]) -> str:
    """The choice that is meant, whatever spaces it is typed with: (B,T)."""
    meant = {one.replace(" ", ""): one for one in choices}.get(text.replace(" ", ""))
    if meant is None:
        raise ValueError(f"it is one of {', '.join(choices)}")
    return meant


_VALUES = (
    "a size (E, H, D, L, L+1, p, …), a tuple of sizes as (1,L), a number, True, False or None, an input (x, q, k, v, query, "
    "key, value, context, mask), zeros or ones of a shape, as zeros(B,T,E), or a word in quotes, as 'dot'"
)


def _pairs(text: str) -> Pairs:
    pairs = []
    for part in re.split(r",(?![^()]*\))", text):  # not those of a tuple
        name, equals, value = part.strip().partition("=")
        if not equals:
            raise ValueError(f"'{part}' is not NAME=VALUE")
        value = value.replace(" ", "")  # zeros(B, T)
        if _PATH.fullmatch(name.strip()) is None or _VALUE.fullmatch(value) is None:
            raise ValueError(f"'{part.strip()}' is not a name with {_VALUES}")
        pairs.append((name.strip(), value))
    return tuple(pairs)
