"""rope as two pipelines, one for each function, and the ways each stage goes wrong."""

import math
import re

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import ROTATIONS, SCALES, SCORES, SOFTMAXES, VALUES
from attn_kata.diagnosis.pictures import Picture, of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom, breaks
from attn_kata.properties import randn

RULES = {
    "frequencies": s.rotary_rules(frequencies=s.frequencies()),
    "places": s.rotary_rules(places=s.own_places),
    "unit": s.nothing,
    "turn": s.rotary_rules(turn=s.turn_neighbours),
}
POSITIONS = (
    *variants(
        "rope.positions_ignored",
        {"places": s.rotary_rules(places=s.places_of_tokens)},
        {"places": s.rotary_rules(places=lambda positions, x: s.places_of_tokens(positions, x) + 1)},
        {"places": s.rotary_rules(places=s.places_of_tokens_in_a_row)},
    ),
    *variants("rope.first_sample", {"places": s.rotary_rules(places=s.places_of_the_first_sample)}),
)
# In attention it looks like rope.direction: both turn q and k so that only the sign of the distance changes.
EXCHANGED = variants("rope.exchanged", {"turn": s.rotary_rules(turn=s.turn_exchanged)})
UNITS = variants("rope.unit", *({"unit": s.rotary_rules(unit=unit)} for unit in (2 * math.pi, math.pi, math.pi / 180)))
# In attention it looks like rope.half_split: q and k have their columns in another order, both in the same.
ANOTHER_MIX = variants("rope.mixed_conventions", {"turn": s.rotary_rules(turn=s.turn_halves_into_neighbours)})
# Not 100: with it, 10000 ** (-i / D) is the same.
OTHER_BASES = variants(
    "rope.other_base", *({"base": s.rotary_rules(base=base)} for base in (10.0, 1000.0, 1e5, 5e5, 1e6))
)
SAMPLES = torch.tensor([[3, 0, 7, 12], [5, 9, 1, 2]])
ANY = torch.tensor([4, 11, 0, 2, 9])


# ---------------------------------------------------------------------------------------- apply_rope(x, positions, base)


def begin_rotation(x, positions, base=10000.0):
    return State(x=x, H=x.shape[1], positions=positions, base=base)


def rotation(state):
    state.out = s.rotated(state, state.x)


def the_last(size, base):
    """1 / base for all pairs. In attention, with its large base, this is too near to no rotation at all."""
    return base ** -torch.ones(size // 2, dtype=torch.float64)


def untouched(state):
    state.out = state.x


def rotation_probes():
    # Small bases and near positions: also frequencies that grow are then right in float32, in which many make them.
    near = torch.tensor([[3, 0, 5, 4], [1, 5, 2, 3]])
    cases = ((2, 3, near, 8, 20.0), (3, 2, torch.tensor([4, 5, 0, 2, 3]), 6, 30.0), (2, 2, near, 12, 20.0))
    return [
        Probe(
            args=(randn(B, H, places.shape[-1], D), places, base),
            sizes={"B": B, "H": H, "T": places.shape[-1], "D": D},
        )
        for B, H, places, D, base in cases
    ]


# ------------------------------------------------------------------------------------ rope_attention(q, k, v, positions)


def begin(q, k, v, positions):
    return State(q=q, k=k, v=v, H=q.shape[1], positions=positions, base=10000.0)


def turned(*names):
    def stage(state):
        for name in names:
            setattr(state, name, s.rotated(state, getattr(state, name)))

    return stage


def values_too(state):
    if state.v.shape[-1] % 2:
        raise RuntimeError("must match the size of tensor")
    turned("q", "k", "v")(state)


def probe(B, H, D, Dv, positions):
    T = positions.shape[-1]
    sizes = {"B": B, "H": H, "T": T, "Tq": T, "Tk": T, "D": D, "Dv": Dv}
    return Probe(args=(randn(B, H, T, D), randn(B, H, T, D), randn(B, H, T, Dv), positions), sizes=sizes)


def probes():
    return [probe(2, 3, 8, 6, SAMPLES), probe(3, 2, 6, 4, ANY), probe(2, 2, 12, 10, SAMPLES)]


PIPELINES = (
    Pipeline(
        entry="apply_rope",
        begin=begin_rotation,
        stages={"base": s.nothing, **RULES, "rotate": rotation},
        variants=(
            *ROTATIONS,
            *EXCHANGED,
            *UNITS,
            *ANOTHER_MIX,
            *POSITIONS,
            *variants("rope.missing", {"rotate": untouched}),
            *variants("rope.one_frequency", {"frequencies": s.rotary_rules(frequencies=the_last)}),
            *variants("rope.from_one", {"places": s.rotary_rules(places=s.moved_places(1))}),
            *variants("rope.concatenated", {"turn": s.rotary_rules(turn=s.turn_and_concatenate)}),
            *variants("rope.base_ignored", {"base": s.rotary_rules(base=10000.0)}),
            *OTHER_BASES,
        ),
        probes=rotation_probes,
    ),
    Pipeline(
        entry="rope_attention",
        begin=begin,
        stages={
            "base": s.nothing,
            **RULES,
            "rotate": turned("q", "k"),
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "causal": s.nothing,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "mix": s.mix,
        },
        variants=(
            *ROTATIONS,
            *EXCHANGED,
            *UNITS,
            *ANOTHER_MIX,
            *POSITIONS,
            *OTHER_BASES,
            *variants("rope.values_rotated", {"rotate": values_too}),
            *variants("rope.keys_only", {"rotate": turned("k")}),
            *variants("rope.queries_only", {"rotate": turned("q")}),
            *variants("rope.missing", {"rotate": s.nothing}),
            *variants("mask.causal", {"causal": s.hide_later_keys}),
            *SCORES,
            *SCALES,
            *variants("scale.heads", {"scale": s.scale_by_heads}),
            *SOFTMAXES,
            *VALUES,
        ),
        probes=probes,
        beside={"rope.from_one": {"places": s.rotary_rules(places=s.moved_places(1))}},
    ),
)


def index_out_of_range(evidence):
    """A position is looked up in something that is too short."""
    for raised in evidence.all_raised():
        if "IndexError" in raised.types and re.search("out of (bounds|range)", raised.text):
            return raised.line or 0
    return None


SYMPTOMS = (
    breaks("rope.odd_size", "odd_size"),
    Symptom(id="rope.short_table", shows=index_out_of_range),
    breaks("rope.far_positions", "any_positions", saying="^out at positions"),
)


def pictures():
    x = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(3).expand(1, 1, 5, 6).contiguous()
    q, k = randn(1, 1, 5, 6), randn(1, 1, 5, 6)
    return (
        Picture(
            entry="apply_rope",
            what="three pairs (1, 0), turned at positions 0 to 4 (cos, sin of each angle)",
            read=lambda out: out[0, 0],
            args=(x, torch.arange(5)),
            rows="position",
            columns="column",
            of_weights=False,
        ),
        of_function("rope_attention", (q, k, randn(1, 1, 5, 6), torch.arange(5))),
    )
