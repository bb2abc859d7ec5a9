"""What a kata says about code by other names, in `katas/<slug>/reading.toml`. A kata without this file takes its contract only.

entry = "MultiHeadAttention"
arguments = ["E", "H", "p=0.0"]      # the constructor's, by symbol; a default where the contract has one
inputs = ["x", "mask"]               # of the call, in the contract's order
mask = "scores"                      # "scores": it broadcasts to (B, H, Tq, Tk); "keys": (B, Tk); "" without one
bias = true                          # whether the layers have one
returns = ["out", "weights"]         # the parts of the result, where it is a tuple

[layers]                             # by role; without layers the entry is a function
q = ["q_proj", "E", "E"]             # its name, its outputs and its inputs, or "norm"

[conventions.NAME]                   # what the code may do instead: the fields of conventions.Convention

[left_out]                           # properties that make no sense
always = [...]                       # for code by other names: what it is called, what it refuses
dropout = [...]                      # where the code has no dropout of the weights
mask = [...]                         # where it takes no mask
causal = [...]                       # where it hides later keys by itself
narrow = [...]                       # where it takes only masks of some shapes
weights = [...]                      # where it returns no weights of each head
lengths = [...]                      # where it takes lengths instead of a mask
dims = [...]                         # where it takes a fixed number of dimensions
bias = [...]                         # where a layer has no bias and cannot be given one
values = [...]                       # where the keys are the values
attention = [...]                    # where there is only a function that builds a mask
builder = [...]                      # where there is none
square = [...]                       # where it takes only as many queries as keys
one_head = [...]                     # where it has one head
query = [...]                        # where it takes no query, and compares its keys with a vector of its own
positions = [...]                    # where nothing says how many positions the code takes

builder = "name_of_a_function"       # the contract's function that builds a mask
rotation = true                      # the entry turns vectors by their positions
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from attn_kata.readings.conventions import Convention
from attn_kata.tables import Table

FILE = "reading.toml"
KINDS = (
    "always", "dropout", "mask", "causal", "narrow", "lengths", "dims", "bias", "weights", "values", "attention", "builder",
    "positions", "square", "one_head", "output", "query"
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LayerOf:
    """A layer of the contract: its name, and its sizes as symbols."""

    name: str
    outputs: str
    inputs: str


@dataclass(frozen=True, kw_only=True)
class WithMask:
    """What a function is asked besides where it takes a mask: properties of another kata."""

    kata: str
    entry: str
    properties: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Contract:
    """A kata's contract, as far as a reading must meet it."""

    kata: str
    entry: str
    arguments: tuple[tuple[str, str | None], ...] = ()
    inputs: tuple[str, ...] = ()
    mask: str = ""
    bias: bool = False
    causal: bool = False
    returns: tuple[str, ...] = ()
    layers: dict[str, LayerOf] = field(default_factory=dict)
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)
    with_mask: WithMask | None = None
    conventions: dict[str, Convention] = field(default_factory=dict)
    builder: str = ""
    rotation: bool = False

    @property
    def is_module(self) -> bool:
        return bool(self.layers)

    @property
    def is_block(self) -> bool:
        """Whether it is a transformer block: an attention and an mlp, each with a norm."""
        return "norm1" in self.layers

    @property
    def has_score(self) -> bool:
        """Whether it is a module with a learned score, which takes a query, keys and values."""
        return self.is_module and "q" in self.inputs and not self.takes_qkv

    @property
    def has_heads(self) -> bool:
        return any(symbol == "H" for symbol, _ in self.arguments)

    @property
    def has_groups(self) -> bool:
        return any(symbol == "G" for symbol, _ in self.arguments)

    @property
    def has_dropout(self) -> bool:
        return "p" in self.inputs or any(symbol == "p" for symbol, _ in self.arguments)

    @property
    def place_of_mask(self) -> int | None:
        """The place of the mask among the inputs, or None."""
        return self.inputs.index("mask") if "mask" in self.inputs else None

    @property
    def takes_qkv(self) -> bool:
        """Whether the module takes query, key and value apart."""
        return self.is_module and "query" in self.inputs and "key" in self.inputs

    @property
    def is_self(self) -> bool:
        """Whether it is a module that takes x alone, and perhaps a mask."""
        return self.is_module and set(self.inputs) <= {"x", "mask"}

    @property
    def has_own_sizes(self) -> bool:
        """Whether it takes x alone, and its input, keys and values have sizes of their own."""
        return self.is_self and {"I", "D", "V"} <= {symbol for symbol, _ in self.arguments}

    @property
    def is_cross(self) -> bool:
        return "context" in self.inputs


def of_kata(folder: Path) -> Contract | None:
    """The contract in a kata's folder, or None where it has no `reading.toml`. Raises KataFileError."""
    file = folder / FILE
    if not file.is_file():
        return None
    table = Table.of_file(file)
    arguments = [text.partition("=") for text in (table.texts("arguments", at_least=0))]
    layers = table.table("layers") if table.has("layers") else None
    left_out = table.table("left_out")
    conventions = table.table("conventions") if table.has("conventions") else None
    also = table.table("with_mask") if table.has("with_mask") else None
    contract = Contract(
        kata=folder.name,
        entry=table.text("entry"),
        arguments=tuple((symbol, default if equals else None) for symbol, equals, default in arguments),
        inputs=table.texts("inputs", at_least=1),
        mask=table.text("mask", ""),
        builder=table.text("builder", ""),
        rotation=table.truth("rotation") if table.has("rotation") else False,
        bias=table.truth("bias") if table.has("bias") else False,
        causal=table.truth("causal") if table.has("causal") else False,
        returns=table.texts("returns", at_least=2) if table.has("returns") else (),
        layers={role: LayerOf(**_layer(layers.texts(role, at_least=3))) for role in layers.names()} if layers else {},
        left_out={kind: left_out.texts(kind, at_least=0) for kind in KINDS if left_out.has(kind)},
        conventions={name: _convention(conventions.table(name)) for name in conventions.names()} if conventions else {},
        with_mask=WithMask(
            kata=also.text("kata"), entry=also.text("entry"), properties=also.texts("properties", at_least=1)
        )
        if also is not None
        else None,
    )
    table.nothing_else()
    left_out.nothing_else()
    return contract


def _convention(table: Table) -> Convention:
    found = Convention(
        mistake=table.text("mistake"),
        words=table.text("words"),
        edits=tuple(_edit(one, table) for one in table.lists("edits")),
        variant=int(table.number("variant")) if table.has("variant") else 0,
        says=table.text("says", ""),
        unless=table.text("unless", ""),
        surely=table.text("surely", ""),
        unless_built=table.text("unless_built", ""),
        leaves_out=table.texts("leaves_out", at_least=0) if table.has("leaves_out") else (),
        one_feature=table.truth("one_feature") if table.has("one_feature") else True,
        needs=table.text("needs", ""),
        rare=table.truth("rare") if table.has("rare") else False,
    )
    table.nothing_else()
    return found


def _edit(texts: tuple[str, ...], table: Table) -> tuple[str, str]:
    if len(texts) != 2:
        raise table.wrong("edits", "must be pairs of an old text and a new one")
    return texts[0], texts[1]


def _layer(texts: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(("name", "outputs", "inputs"), texts, strict=True))
