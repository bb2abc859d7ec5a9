"""What of the contract a piece of code can be asked, under a reading: masks of some shapes, later keys hidden always.

The attempt and the reference are asked the same: a mask is narrowed to one that the code can take, for both. Only the
reference gets the mask that the code makes by itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import Tensor

from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, Variant, variants
from attn_kata.diagnosis.stages import scale
from attn_kata.readings.asking import cached, causal, mixed_places, narrowed_probes
from attn_kata.readings.candidates import rotations
from attn_kata.readings.contract import Contract
from attn_kata.readings.conventions import Convention, followed
from attn_kata.readings.reading import CHANNELS_FIRST, ROLES, Reading

# Beside a gate, the activation is its author's choice.
_OF_ACTIVATIONS = (
    "block.relu",
    "block.tanh_gelu",
    "block.activation",
    "block.activation_twice",
    "block.activation_place",
)
_ONE_FOR_ALL_HEADS = ("(B, 1, T, T)", "(B, T, T)", "(T, T, B)")
_ONE_FOR_ALL_SAMPLES = ("(T, T)",)
KEYS = ("(B, 1, 1, T)", "(B, 1, T)", "(B, T)", "(T, B)")


def _scales_of_wide_heads(head_width: int) -> tuple[Variant, ...]:
    """The mistakes in the scale of heads that are wider than the contract's: q is larger there, for the right root is.

    `head_width`: 0 for heads as wide as x, which is the right size there.
    """

    def larger(state: State) -> float:
        D = state.q.shape[-1]
        return float(((head_width or state.H * D) / D) ** 0.5)

    wrong = (
        *variants("scale.missing", {"scale": scale(lambda state: 1 / larger(state))}),
        *variants("scale.no_sqrt", {"scale": scale(lambda state: state.q.shape[-1] * larger(state))}),
    )
    of_x = {"scale": scale(lambda state: (state.H * state.q.shape[-1]) ** 0.5 / larger(state))}
    return (*wrong, *variants("scale.embed_dim", of_x)) if head_width else wrong


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The masks that the code can take."""

    reading: Reading
    contract: Contract

    @property
    def place(self) -> int | None:
        """The place of the mask among the inputs, or None."""
        return self.contract.place_of_mask

    def of_masked_function(self) -> Limits:
        """The limits of the entry that a function with a mask is asked besides; the same for any other contract."""
        also = self.contract.with_mask
        if also is None:
            return self
        masked = replace(self.contract, entry=also.entry, inputs=("q", "k", "v", "mask"), mask="scores", with_mask=None)
        return replace(self, contract=masked)

    @property
    def _opens(self) -> bool:
        """Whether a call without a mask is made with an open one."""
        return self.reading.needs_mask and self.reading.mask != "none"

    @property
    def fixes_base(self) -> bool:
        """Whether it is a rotation whose base cannot be set: both sides are asked without one."""
        return self.contract.rotation and rotations.base_is_fixed(self.reading)

    def narrowed(self, mask: Tensor) -> Tensor:
        """A mask of the contract as one that the code can take, in the shape of the first. Every row keeps its open keys."""
        reading = self.reading
        if self.contract.mask == "keys":  # (B, Tk)
            return _first_keys(mask) if reading.mask == "lengths" else mask
        keys_only = reading.shape in KEYS or reading.mask == "lengths"
        if (
            reading.one_head and self.contract.has_heads and mask.dim() > 2
        ):  # a probe may have a mask for each of several
            mask = mask[..., :1, :, :]
        if reading.dims not in (2, 3) and (reading.shape in _ONE_FOR_ALL_HEADS or keys_only):
            mask = _first(mask, -3)
        if reading.shape in _ONE_FOR_ALL_SAMPLES:
            mask = _first(_first(mask, -3), -4)
        if keys_only:
            mask = _narrowest_query(mask)
        if reading.mask == "lengths":
            mask = _first_keys(mask)
        if reading.causal and mask.dim() and mask.shape[-1] > 1:
            mask = mask | (torch.arange(mask.shape[-1]) == 0)  # or the first query would have nothing to attend to
        return mask if bool(mask.any(-1).all()) or not keys_only else mask | (torch.arange(mask.shape[-1]) == 0)

    def of_reference(self, args: tuple[object, ...]) -> tuple[object, ...]:
        """The arguments of a call as the reference gets them: with the mask that the code takes, and what it hides itself."""
        place = self.place
        if place is None:
            return args[:2] if self.fixes_base else args
        if self.reading.keys_are_values:
            args = (*args[:2], args[1], *args[3:])
        first = args[0]
        assert isinstance(first, Tensor)
        given = args[place] if len(args) > place else None
        mask = self.narrowed(given) if isinstance(given, Tensor) and self.reading.mask != "none" else None
        if mask is None and isinstance(given, Tensor) and not self.contract.is_module:
            mask = given | True  # the contract's function takes a mask always
        if mask is not None and self.reading.hides_queries and mask.dim() > 1:
            mask = mask & mask[..., :1, :].transpose(-2, -1)
        has_keys = self.contract.takes_qkv or self.contract.inputs[1:2] == ("k",)
        keys = args[1].shape[-2] if has_keys and isinstance(args[1], Tensor) else first.shape[-2]
        if mask is None and self._opens and self.contract.is_module:  # as the code is called then
            memory = args[1] if len(args) > 1 else None
            of_keys = self.contract.mask == "keys" and isinstance(memory, Tensor)
            shape = cast("Tensor", memory).shape[:2] if of_keys else (first.shape[-2], keys)
            mask = torch.ones(shape, dtype=torch.bool)
        if self.reading.causal:
            own = causal.lower(first.shape[-2], keys)  # (Tq, Tk)
            mask = own if mask is None else own & mask
        return (*args[:place], mask, *args[place + 1 :]) if len(args) > place or mask is not None else args

    @property
    def conventions(self) -> tuple[Convention, ...]:
        """What the code does otherwise than the contract, as it is read."""
        known = self.contract.conventions
        return tuple(known[name] for name in self.reading.conventions if name in known)

    @property
    def without_weights(self) -> bool:
        """Whether the contract returns the weights, and the code does not: they are 0 on both sides."""
        return bool(self.contract.returns) and len(self.reading.places) < 2

    @property
    def zeroed(self) -> frozenset[str]:
        """The contract's parameters that the code does not have, which are 0: biases of matrices that are no layers.

        And the layer of the query, where keys are compared with a vector alone.
        """
        if self.reading.without_query:
            return frozenset((f"{self.contract.layers['q'].name}.weight",))
        if not self.contract.bias:
            return frozenset()
        layers = {role: one.name for role, one in self.contract.layers.items() if role in ROLES}
        read = {name: self.reading.layer(role) for role, name in layers.items()}
        return frozenset(f"{name}.bias" for name, layer in read.items() if layer.weight and not layer.bias)

    @property
    def shared(self) -> frozenset[str]:
        """The contract's parameters of which the code has those of one head, for all heads."""
        return self._with_layout("shared")

    @property
    def slices(self) -> frozenset[str]:
        """The contract's parameters of which the code has, for each head, what acts on its own columns alone."""
        return self._with_layout("slices")

    @property
    def has_one_width(self) -> bool:
        """Whether a learned score is built with one size, which is that of query, keys and what it compares."""
        widths = {value for _, value in self.reading.sizes} & {"I", "C", "D", "V"}
        return self.reading.alike and self.contract.has_score and len(widths) == 1

    @property
    def as_they_are(self) -> frozenset[str]:
        """The contract's layers that the code does not have: they are the identity on both sides, as what it takes is square.

        That is the layer of keys whose score is a plain product, or one that is missing beside others for q, k and v.
        """
        layers, reading = self.contract.layers, self.reading
        if not reading.is_class or self.contract.rotation:
            return frozenset()
        if self.contract.is_block:  # a block whose heads' results are joined, and go through no layer
            lacks = bool(reading.q.weight) and not reading.o.weight and not reading.no_output
            return frozenset(f"{layers['o'].name}.{part}" for part in ("weight", "bias")) if lacks else frozenset()
        if self.contract.has_score:
            lacking = ["k"] * (not reading.k.weight)
        else:
            lacking = [role for role in ("q", "k", "v") if role in layers and not reading.layer(role).weight]
            few = len(lacking) == 1 or (len(lacking) == 3 and (bool(reading.o.weight) or self.contract.takes_qkv))
            lacking = lacking if few and ".*." not in layers[lacking[0]].name else []
        return frozenset(f"{layers[role].name}.{part}" for role in lacking for part in ("weight", "bias"))

    def _with_layout(self, layout: str) -> frozenset[str]:
        roles = [role for role in self.contract.layers if role in ROLES and self.reading.layer(role).layout == layout]
        return frozenset(f"{self.contract.layers[role].name}.{part}" for role in roles for part in ("weight", "bias"))

    def heads(self, build: tuple[object, ...]) -> int:
        """The number of heads among a constructor's arguments."""
        symbols = [symbol for symbol, _ in self.contract.arguments]
        found = build[symbols.index("H")] if "H" in symbols[: len(build)] else 1
        return found if isinstance(found, int) else 1

    def parameters(self, given: dict[str, Tensor], heads: int) -> dict[str, Tensor]:
        """The contract's parameters as far as the code can have them."""
        return {name: self._parameter(name, value, heads) for name, value in given.items()}

    def _parameter(self, name: str, value: Tensor, heads: int) -> Tensor:
        if name in self.zeroed:
            return torch.zeros_like(value)
        if name in self.as_they_are:
            return torch.eye(*value.shape, dtype=value.dtype) if value.dim() > 1 else torch.zeros_like(value)
        if value.shape[0] % heads:
            return value
        if name in self.slices and value.dim() == 2:
            own = [value.unflatten(0, (heads, -1)).unflatten(2, (heads, -1))[head, :, head] for head in range(heads)]
            diagonal: Tensor = torch.block_diag(*own)
            return diagonal
        if name not in self.shared:
            return value
        if value.dim() == 1:
            return value[: value.shape[0] // heads].repeat(heads)
        first = value[: value.shape[0] // heads, : value.shape[1] // heads]
        whole: Tensor = torch.block_diag(*[first] * heads)
        return whole

    def pipeline(self, pipeline: Pipeline) -> Pipeline:
        """The kata's pipeline under these limits. Where the code is causal by itself, it may be so in a wrong way."""
        if pipeline.entry != self.contract.entry:
            return pipeline
        begin = pipeline.begin

        def begun(*given: Any) -> State:
            skipped = 2 if pipeline.module else 0
            before = given[:skipped]
            if pipeline.module:
                before = (self.parameters(before[0], self.heads(before[1])), *before[1:])
            state: State = begin(*before, *self.of_reference(given[skipped:]))
            if self.reading.causal and self.place is not None:  # the mask that is handed in, without the code's own
                mask = given[skipped + self.place] if len(given) > skipped + self.place else None
                is_given = isinstance(mask, Tensor) and self.reading.mask != "none"
                state.handed = self.narrowed(cast("Tensor", mask)) if is_given else None
            if self.reading.hides_queries and self.place is not None:
                mask = given[skipped + self.place] if len(given) > skipped + self.place else None
                state.kept_queries = kept_queries(self.narrowed(mask)) if isinstance(mask, Tensor) else None
            if self.without_weights:  # as the adapter gives them, whatever shape the code's have
                queries, keys = given[skipped : skipped + 2]
                state.no_weights = queries.new_zeros(queries.shape[0], state.H, queries.shape[-2], keys.shape[-2])
            return state

        if self.without_weights:
            pipeline = replace(pipeline, stages={**pipeline.stages, "no_weights": _no_weights})
        limited = replace(followed(pipeline, self.conventions), begin=begun)
        if self.reading.q.layout == "wide" and "scale" in limited.stages:
            limited = replace(limited, variants=(*limited.variants, *_scales_of_wide_heads(self.reading.head_width)))
        if self.reading.hides_queries and self.place is not None:
            limited = replace(limited, stages={**limited.stages, "hidden_queries": _lose_hidden_queries})
        if self.reading.square and not self.contract.is_self:
            limited = replace(
                limited, probes=lambda: [one for one in map(narrowed_probes.as_square, pipeline.probes()) if one]
            )
        if self.reading.multiple > 1:
            limited = replace(limited, probes=functools.partial(self._with_multiples, limited.probes))
        if self.reading.dims == 4 or (self.reading.dims == 3 and self.contract.is_module):
            limited = replace(
                limited, probes=functools.partial(narrowed_probes.of_rank, self.reading.dims, limited.probes)
            )
        if not self.reading.square and self.reading.causal and {"k", "key"} & set(self.contract.inputs):
            every = limited.probes
            limited = replace(limited, probes=lambda: [narrowed_probes.with_fewer_queries(one) for one in every()])
        if self.reading.alike and self.contract.has_own_sizes:
            of_sizes = limited.probes
            limited = replace(limited, probes=lambda: [narrowed_probes.of_one_size(one) for one in of_sizes()])
        elif self.has_one_width:
            of_widths = limited.probes
            limited = replace(limited, probes=lambda: [narrowed_probes.of_one_width(one) for one in of_widths()])
        elif self.contract.has_score and self.as_they_are:
            of_score = limited.probes
            limited = replace(
                limited,
                probes=lambda: [narrowed_probes.with_keys_of(one, len(self.contract.arguments)) for one in of_score()],
            )
        elif self.reading.narrow:
            of_narrow, wide = limited.probes, self.reading.narrow
            limited = replace(
                limited,
                probes=lambda: [narrowed_probes.of_one_size(one, wide=wide, values=wide) for one in of_narrow()],
            )
        elif self.reading.is_one_of_heads:
            of_heads = limited.probes
            limited = replace(limited, probes=lambda: [narrowed_probes.of_one_size(one, wide=2) for one in of_heads()])
        elif len(self.reading.fused) == 3 and self.contract.has_own_sizes:
            of_fused = limited.probes
            limited = replace(limited, probes=lambda: [narrowed_probes.with_values_as_keys(one) for one in of_fused()])
        elif self.reading.alike and (self.contract.is_cross or self.contract.has_score):
            of_cross = limited.probes
            limited = replace(
                limited, probes=lambda: [one for one in of_cross() if narrowed_probes.is_of_one_width(one.args)]
            )
        elif self.reading.alike:
            probes = limited.probes
            limited = replace(
                limited, probes=lambda: [replace(one, args=narrowed_probes.alike(one.args)) for one in probes()]
            )
        for symbol, fixed in (("G", self.reading.one_group), ("H", self.reading.one_head)):
            if fixed:
                limited = replace(limited, probes=functools.partial(self._with_one, symbol, limited.probes))
        if self.reading.mlp_ratio:
            limited = replace(limited, probes=functools.partial(self._with_ratio, limited.probes))
        if self.reading.one_head:  # the number of heads is nowhere in it
            of_several = ("scale.heads", "mask.folded_order")
            limited = replace(limited, variants=tuple(one for one in limited.variants if one.id not in of_several))
        if self.reading.order in CHANNELS_FIRST and self.contract.is_self:
            limited = replace(limited, variants=(*limited.variants, *mixed_places.wrong_reshapes(limited)))
        if self.contract.is_block:
            known = [
                one for one in limited.variants if not self.reading.mlp_gate.weight or one.id not in _OF_ACTIVATIONS
            ]
            return replace(limited, variants=(*known, *causal.wrong_triangles(limited)))
        if not self.reading.causal:
            return limited
        if self.place is None:
            limited = causal.hidden_by_itself(limited)
        else:
            others = tuple(one for one in limited.variants if one.id != "mask.causal")  # it is so by itself
            limited = replace(limited, variants=(*others, *causal.wrong_senses(limited)))
        if not self.reading.by_token:
            return limited
        # With a cache that is not read, a token has its own value only.
        others = tuple(one for one in limited.variants if one.id != "mix.own_values")
        return replace(limited, variants=(*others, *cached.wrong_caches(limited, self.reading.chunks)))

    def _with_multiples(self, probes: Callable[[], Sequence[Probe]]) -> list[Probe]:
        """The probes of a module with heads whose size is a multiple of a number."""
        symbols = [each for each, _ in self.contract.arguments]
        found = []
        for one in probes():
            built = dict(zip(symbols, one.build, strict=False))
            if "D" in built or not {"E", "H"} <= built.keys():
                size = built.get("D", self.reading.multiple)
                found += [one] * (size % self.reading.multiple == 0)
                continue
            size = narrowed_probes.rounded_up(built["E"] // built["H"], self.reading.multiple)
            of_context = self.contract.inputs.index("context") if self.contract.is_cross else None
            found.append(
                narrowed_probes.as_wide_as(one, size * built["H"], symbols.index("E"), size=size, but_for=of_context)
            )
        return found

    def _with_ratio(self, probes: Callable[[], Sequence[Probe]]) -> list[Probe]:
        """The probes for a block whose mlp is so many times as wide as x."""
        symbols = [each for each, _ in self.contract.arguments]
        place, width, found = symbols.index("M"), symbols.index("E"), []
        for one in probes():
            wide = self.reading.mlp_ratio * one.build[width]
            build = (*one.build[:place], wide, *one.build[place + 1 :])
            found.append(replace(one, build=build, sizes={**one.sizes, "M": wide}))
        return found

    def _with_one(self, symbol: str, probes: Callable[[], Sequence[Probe]]) -> list[Probe]:
        """The probes for a module with one head, or with one key-value head."""
        place = [each for each, _ in self.contract.arguments].index(symbol)
        return [
            replace(one, build=(*one.build[:place], 1, *one.build[place + 1 :]), sizes={**one.sizes, symbol: 1})
            for one in probes()
        ]

    def without_mask(self) -> Limits:
        """Limits for code that is called without a mask."""
        return replace(self, reading=replace(self.reading, mask="none"))


def _no_weights(state: State) -> None:
    out, _ = state.out
    state.out = (out, state.no_weights)


def _first(mask: Tensor, dim: int) -> Tensor:
    """The first entry along a dimension for all of them, where the mask has it."""
    if mask.dim() < -dim:
        return mask
    return mask.narrow(dim, 0, 1).expand_as(mask)


def _narrowest_query(mask: Tensor) -> Tensor:
    """The query that keeps the fewest keys, and some, for all of them: one that keeps every key would show nothing."""
    if mask.dim() < 2:
        return mask
    kept = mask.sum(-1).flatten(0, -2) if mask.dim() > 2 else mask.sum(-1)[None]  # (..., Tq)
    counts = kept.sum(0) + mask.numel() * (kept == 0).any(0)  # (Tq,)
    return mask.narrow(-2, int(counts.argmin()), 1).expand_as(mask)


def _first_keys(mask: Tensor) -> Tensor:
    """As many keys kept as the mask keeps, but the first ones; at least one."""
    count = mask.sum(-1, keepdim=True).clamp(min=1)
    return torch.arange(mask.shape[-1]) < count


def kept_queries(mask: Tensor) -> Tensor:
    """The queries (T,) or (B, T) that a mask of keys (..., T, T) keeps, where it is one for both."""
    kept = mask[..., 0, :]  # (T,), (B, T) or (B, H, T)
    while kept.dim() > 2:
        kept = kept[:, 0]
    return kept


def _lose_hidden_queries(state: State) -> None:
    if state.kept_queries is None:
        return
    if isinstance(state.out, Tensor):
        state.out = of_kept(state.out, state.kept_queries)
    else:
        out, weights = state.out
        state.out = (of_kept(out, state.kept_queries), weights)


def of_kept(out: Tensor, kept: Tensor) -> Tensor:
    """The output (B, T, E) with that of the first query that is kept in place of each that is hidden."""
    first = kept.int().argmax(-1).expand(out.shape[0])  # (B,)
    return torch.where(kept[..., None], out, out[torch.arange(out.shape[0]), first][:, None])
