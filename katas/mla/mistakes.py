"""mla as a pipeline, and the ways each stage goes wrong."""

import math

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import MASKINGS, MERGES, ROTATIONS, SOFTMAXES
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import breaks
from attn_kata.properties import randn


def begin(parameters, build, x):
    _, H, D, L, R = build
    T = x.shape[1]
    return State(
        parameters=parameters,
        x=x,
        H=H,
        D=D,
        R=R,
        latent_size=L,
        positions=torch.arange(T),
        base=10000.0,
        keep=torch.ones(T, T, dtype=torch.bool).tril(),
    )


def queries(content_first=True, by_kind=False, by=s.split):
    """q (B, H, T, D) and q_rotary (B, H, T, R), from the columns of a head, or from those of all heads by kind."""

    def stage(state):
        q = s.linear(state, "q_proj", state.x)
        if by_kind:
            content, rotary = q.split([state.H * state.D, state.H * state.R], dim=-1)
            state.q, state.q_rotary = s.split(content, state.H), s.split(rotary, state.H)
        elif content_first:
            state.q, state.q_rotary = by(q, state.H).split([state.D, state.R], dim=-1)
        else:
            state.q_rotary, state.q = s.split(q, state.H).split([state.R, state.D], dim=-1)

    return stage


def latent(state):
    state.latent = s.linear(state, "kv_down", state.x)


def latent_by(rule):
    def stage(state):
        latent(state)
        state.latent = rule(state.latent)

    return stage


def rms_norm(latent):
    return latent / (latent.square().mean(-1, keepdim=True) + 1e-6).sqrt()


def layer_norm(latent):
    return torch.nn.functional.layer_norm(latent, latent.shape[-1:])


def turned_latent(state):
    latent(state)
    if state.latent.shape[-1] % 2:
        raise RuntimeError("must match the size of tensor")
    state.latent = s.rotated(state, state.latent[:, None])[:, 0]


def up(k="k_up", v="v_up", by=s.split, by_v=None):
    def stage(state):
        state.k = by(s.linear(state, k, state.latent), state.H)
        state.v = (by_v or by)(s.linear(state, v, state.latent), state.H)

    return stage


def in_memory_order(part, heads):
    return part.reshape(part.shape[0], heads, part.shape[1], -1)


def interleaved(part, heads):
    return part.unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)


def rotary_key(state):
    state.k_rotary = s.linear(state, "k_rope", state.x)[:, None]


def turn(*names):
    def stage(state):
        for name in names:
            setattr(state, name, s.rotated(state, getattr(state, name)))

    return stage


def turn_by_head(*names):
    """The parts `names` turned by the number of the head, the other by its position. The shared key counts as head 0."""

    def stage(state):
        turn(*{"q_rotary", "k_rotary"} - set(names))(state)
        places = state.places
        state.places = s.places_of_heads
        turn(*names)(state)
        state.places = places

    return stage


def turn_content_too(*names):
    """The content of `names` is turned as well; an odd last column stays."""

    def stage(state):
        turn("q_rotary", "k_rotary")(state)
        for name in names:
            content = getattr(state, name)
            even = content.shape[-1] // 2 * 2
            turned = s.rotated(state, content[..., :even])
            setattr(state, name, torch.cat([turned, content[..., even:]], dim=-1))

    return stage


def turn_odd_content_not(state):
    """Content of q and k turned, which raises where D is odd."""
    if state.D % 2:
        raise RuntimeError("must match the size of tensor")
    turn_content_too("q", "k")(state)


def turn_from_one(name, other):
    """The positions of one of the two counted from 1."""

    def stage(state):
        turn(other)(state)
        places = state.places
        state.places = s.moved_places(1)
        turn(name)(state)
        state.places = places

    return stage


def content_score(state):
    state.scores = state.q @ state.k.transpose(-2, -1)


def rotary_score(state):
    state.scores = state.scores + state.q_rotary @ state.k_rotary.transpose(-2, -1)


def rotary_score_of_the_first_head(state):
    extra = state.q_rotary[:, :1] @ state.k_rotary.transpose(-2, -1)
    state.scores = state.scores + extra


def rotary_score_in_the_first_head(state):
    extra = state.q_rotary[:, :1] @ state.k_rotary.transpose(-2, -1)
    state.scores = torch.cat([state.scores[:, :1] + extra, state.scores[:, 1:]], dim=1)


def frequencies_of(size):
    """The stage whose exponents are divided by another size than that of the rotary part."""

    def stage(state):
        state.frequencies = lambda width, base: (
            float(base) ** (-torch.arange(0, width, 2, dtype=torch.float64) / size(state))
        )

    return stage


def scaled_parts(content, rotary):
    """The stages that scale each part of the scores by its own rule, instead of their sum."""

    def of_content(state):
        content_score(state)
        state.scores = state.scores * content(state)

    def of_rotary(state):
        state.scores = state.scores + rotary(state) * (state.q_rotary @ state.k_rotary.transpose(-2, -1))

    return {"score": of_content, "extra": of_rotary, "scale": s.nothing}


def shifted(by):
    """The causal mask with its diagonal moved."""

    def stage(state):
        s.fill(state, torch.ones_like(state.keep).tril(by))

    return stage


def upper_triangle(state):
    s.fill(state, state.keep.transpose(-2, -1))


def weights_scaled(state):
    state.weights = state.weights / math.sqrt(state.D + state.R)


def scale_by(rule):
    return s.scale(lambda state: rule(state))


def probe(B, T, E, H, D, L, R):
    sizes = {"B": B, "T": T, "Tq": T, "Tk": T, "E": E, "H": H, "D": D}
    return Probe(args=(randn(B, T, E),), build=(E, H, D, L, R), sizes=sizes)


def probes():
    return [probe(2, 5, 10, 3, 4, 6, 8), probe(3, 6, 9, 2, 6, 8, 4), probe(2, 4, 12, 4, 4, 4, 12)]


PIPELINES = (
    Pipeline(
        entry="LatentAttention",
        module=True,
        begin=begin,
        stages={
            "frequencies": s.rotary_rules(frequencies=s.frequencies()),
            "places": s.rotary_rules(places=s.own_places),
            "unit": s.nothing,
            "turn": s.rotary_rules(turn=s.turn_neighbours),
            "queries": queries(),
            "latent": latent,
            "up": up(),
            "rotary": rotary_key,
            "rotate": turn("q_rotary", "k_rotary"),
            "score": content_score,
            "extra": rotary_score,
            "scale": scale_by(lambda state: math.sqrt(state.D + state.R)),
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "mix": s.mix,
            "merge": s.merge_heads,
            "output": s.project_out,
        },
        variants=(
            *variants("mla.scale_head_dim", {"scale": scale_by(lambda state: math.sqrt(state.D))}),
            *variants(
                "mla.scale_other",
                {"scale": scale_by(lambda state: math.sqrt(state.latent_size + state.R))},
                {"scale": scale_by(lambda state: math.sqrt(state.latent_size))},
                {"scale": scale_by(lambda state: math.sqrt(state.R))},
                {"scale": scale_by(lambda state: math.sqrt(state.x.shape[-1] / state.H))},
            ),
            *variants(
                "scale.embed_dim",
                {"scale": scale_by(lambda state: math.sqrt(state.x.shape[-1]))},
                {"scale": scale_by(lambda state: math.sqrt(state.H * state.D))},
                {"scale": scale_by(lambda state: math.sqrt(state.H * (state.D + state.R)))},
            ),
            *variants("scale.missing", {"scale": s.nothing}),
            *variants("scale.no_sqrt", {"scale": scale_by(lambda state: float(state.D + state.R))}),
            *variants(
                "scale.inverted",
                {"scale": scale_by(lambda state: 1 / math.sqrt(state.D + state.R))},
                {"scale": scale_by(lambda state: 1 / (state.D + state.R))},
            ),
            *variants("scale.key_length", {"scale": s.scale_by_key_length}),
            *variants("scale.after_softmax", {"scale": s.nothing, "rescale": weights_scaled}),
            *variants(
                "mla.parts_scaled_apart",
                scaled_parts(lambda state: state.D**-0.5, lambda state: state.R**-0.5),
                scaled_parts(lambda state: state.D**-0.5, lambda state: 1.0),
                scaled_parts(lambda state: (state.D + state.R) ** -0.5, lambda state: 1.0),
            ),
            *variants("mla.rotary_first", {"queries": queries(content_first=False)}),
            *variants("mla.columns_by_kind", {"queries": queries(by_kind=True)}),
            *variants("mla.value_from_key", {"up": up(v="k_up")}),
            *variants("mla.key_from_value", {"up": up(k="v_up")}),
            *variants("mla.norm_on_latent", {"latent": latent_by(rms_norm)}, {"latent": latent_by(layer_norm)}),
            *variants("mla.activation_on_latent", {"latent": latent_by(torch.relu)}),
            *variants(
                "mla.rope_on_latent",
                {"latent": turned_latent},
                {"rotate": turn_odd_content_not},
                *({"rotate": turn_content_too(*names)} for names in (("q", "k"), ("k",), ("q",))),
            ),
            *variants(
                "rope.from_one",
                {"rotate": turn_from_one("q_rotary", "k_rotary")},
                {"rotate": turn_from_one("k_rotary", "q_rotary")},
            ),
            *variants(
                "mla.frequencies",
                {"frequencies": frequencies_of(lambda state: state.D + state.R)},
                {"frequencies": frequencies_of(lambda state: state.D)},
            ),
            *variants(
                "rope.head_axis", {"rotate": turn_by_head("q_rotary")}, {"rotate": turn_by_head("q_rotary", "k_rotary")}
            ),
            *variants("mla.no_rotation", {"rotate": s.nothing}),
            *variants("rope.keys_only", {"rotate": turn("k_rotary")}),
            *variants("rope.queries_only", {"rotate": turn("q_rotary")}),
            *variants("mla.rotary_lost", {"extra": s.nothing}),
            *variants(
                "mla.rotary_of_one_head",
                {"extra": rotary_score_of_the_first_head},
                {"extra": rotary_score_in_the_first_head},
            ),
            *variants("mla.not_causal", {"mask": s.nothing}),
            *variants("mask.shifted", {"mask": shifted(1)}, {"mask": shifted(-1)}),
            *variants("mask.upper_triangle", {"mask": upper_triangle}),
            *variants(
                "split.no_transpose",
                {"up": up(by=in_memory_order)},
                {"up": up(by=in_memory_order, by_v=s.split)},
                {"up": up(by_v=in_memory_order)},
                {"queries": queries(by=in_memory_order)},
                {"queries": queries(by=in_memory_order), "up": up(by=in_memory_order)},
            ),
            *variants("split.interleaved", {"up": up(by=interleaved)}),
            *(variant for variant in ROTATIONS if variant.id != "rope.head_axis"),
            *MASKINGS,
            *SOFTMAXES,
            *MERGES,
        ),
        probes=probes,
    ),
)

# The head size of the common words, such as "the contract divides by √D", is D + R here: they are said without numbers.
UNSAID_SIZES = ("D",)

SYMPTOMS = (
    breaks("mla.odd_rope_dim", "odd_rope_dim"),
    breaks("mla.rotary_per_head", "parameters", saying=r"k_rope\.weight has shape"),
)
