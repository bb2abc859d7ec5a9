"""causal_mask as two pipelines, one for each function, and the ways each stage goes wrong."""

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import WEIGHTS
from attn_kata.diagnosis.pictures import of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.properties import randn


def keeps(num_queries, num_keys, rule):
    """(Tq, Tk), True where `rule(i, j, Tk - Tq)`."""
    i, j = torch.arange(num_queries)[:, None], torch.arange(num_keys)
    return rule(i, j, num_keys - num_queries).expand(num_queries, num_keys)


def right(i, j, ahead):
    return j <= i + ahead


WRONG = (
    ("mask.shifted", lambda i, j, ahead: j < i + ahead),
    ("mask.shifted", lambda i, j, ahead: j <= i + ahead + 1),
    ("mask.top_left", lambda i, j, ahead: j <= i),
    ("mask.offset_sign", lambda i, j, ahead: j <= i - ahead),
    ("mask.inverted", lambda i, j, ahead: j > i + ahead),
    ("mask.upper_triangle", lambda i, j, ahead: j >= i + ahead),
    ("mask.lost", lambda i, j, ahead: j >= 0 * i),
)

# ------------------------------------------------------------------------------- causal_mask(num_queries, num_keys, device)


def begin_mask(num_queries, num_keys, device=None):
    return State(Tq=num_queries, Tk=num_keys)


def build(rule):
    def stage(state):
        state.out = keeps(state.Tq, state.Tk, rule)

    return stage


def mask_probes():
    return [Probe(args=(Tq, Tk), sizes={"Tq": Tq, "Tk": Tk}) for Tq, Tk in ((3, 5), (4, 4), (1, 6), (5, 7))]


# ------------------------------------------------------------------------------------------------- causal_attention(q, k, v)


def begin(q, k, v):
    return State(q=q, k=k, v=v, H=q.shape[1], keep=keeps(q.shape[-2], k.shape[-2], right))


def keep_by(rule):
    """The keys that later stages hide are those for which `rule` does not hold."""

    def stage(state):
        state.keep = keeps(state.q.shape[-2], state.k.shape[-2], rule)

    return stage


def keep_square(length):
    """A triangle of as many rows as columns: an error later where the lengths differ, except for one row."""

    def stage(state):
        state.keep = torch.ones(length(state), length(state), dtype=torch.bool).tril()

    return stage


def probe(B, H, Tq, Tk, D, Dv):
    sizes = {"B": B, "H": H, "Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv}
    return Probe(args=(randn(B, H, Tq, D), randn(B, H, Tk, D), randn(B, H, Tk, Dv)), sizes=sizes)


def probes():
    return [probe(2, 3, 5, 7, 6, 4), probe(3, 2, 5, 5, 7, 8), probe(2, 2, 3, 4, 5, 3)]


PIPELINES = (
    Pipeline(
        entry="causal_mask",
        begin=begin_mask,
        stages={"mask": build(right)},
        variants=tuple(variant for id, rule in WRONG for variant in variants(id, {"mask": build(rule)})),
        probes=mask_probes,
    ),
    Pipeline(
        entry="causal_attention",
        begin=begin,
        stages={
            "read": s.nothing,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "rule": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "mix": s.mix,
        },
        variants=(
            *(variant for id, rule in WRONG for variant in variants(id, {"rule": keep_by(rule)})),
            *variants(
                "mask.square_only",
                {"rule": keep_square(lambda state: state.scores.shape[-2])},
                {"rule": keep_square(lambda state: state.scores.shape[-1])},
            ),
            *variants("mask.zero_fill", {"mask": s.mask_with_zero}),
            *variants("mask.zero_times_inf", {"mask": s.mask_zero_times_inf}, shows_in_values=False),
            *variants(
                "mask.after_softmax",
                {"mask": s.nothing, "remask": s.mask_weights},
                {"mask": s.nothing, "remask": s.fill_weights},
            ),
            *variants("scale.missing", {"scale": s.nothing}),
            *variants("scale.embed_dim", {"scale": s.scale_by_embed_dim}),
            *variants("scale.value_dim", {"scale": s.scale_by_value_dim}),
            *variants("scale.key_length", {"scale": s.scale_by_key_length}, {"scale": s.scale_by_query_length}),
            *variants("scale.heads", {"scale": s.scale_by_heads}),
            *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt}),
            *variants("scale.inverted", {"scale": s.scale_inverted}, {"scale": s.scale_squared_inverted}),
            *variants("scale.floor_division", {"scale": s.scale_floor_division}),
            *variants(
                "scale.after_softmax",
                {"scale": s.nothing, "rescale": s.scale_weights},
                {"scale": s.nothing, "rescale": s.scale_weights_by_embed_dim},
            ),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants(
                "softmax.head_axis",
                {"normalise": s.softmax_over_heads},
                {"normalise": s.softmax_over(0)},
                {"normalise": s.softmax_over_lead},
            ),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *variants("softmax.missing", {"normalise": s.softmax_missing}, {"normalise": s.softmax_missing_unmasked}),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            *WEIGHTS,
            *variants("mix.keys", {"mix": s.values_are_keys}),
            *variants("score.transposed", {"score": s.score_transposed_when_square}),
            *variants("score.reshaped", {"score": s.score_reshaped}, {"score": s.score_of_keys_reshaped}),
            *variants("project.swapped", {"score": s.score_swapped}),
            *variants("context.query_length", {"read": s.context_by_query_length}),
        ),
        probes=probes,
    ),
)


def pictures():
    return (
        of_function("causal_attention", (randn(1, 1, 5, 6), randn(1, 1, 5, 6), randn(1, 1, 5, 3))),
        of_function(
            "causal_attention",
            (randn(1, 1, 3, 6), randn(1, 1, 5, 6), randn(1, 1, 5, 3)),
            what="the weights with Tq < Tk",
        ),
    )
