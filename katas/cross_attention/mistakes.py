"""cross_attention as a pipeline, and the ways each stage goes wrong."""

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import LAYERS, ONE_LAYER, OUTPUTS, SPLITS, WEIGHTS
from attn_kata.diagnosis.pictures import of_heads, of_layout
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom, heads_first
from attn_kata.properties import randn


def begin(parameters, build, x, context, keep=None):
    return State(
        parameters=parameters, x=x, context=context, H=build[2], keep=None if keep is None else keep[:, None, None, :]
    )


def probe(B, Tq, Tk, E, C, H, masked=True):
    keep = None
    if masked:
        keep = torch.rand(B, Tk) > 0.4
        keep[:, 1] = True  # no row is empty
        keep[0, 2] = False
    sizes = {"B": B, "Tq": Tq, "Tk": Tk, "E": E, "context_dim": C, "H": H, "D": E // H}
    return Probe(args=(randn(B, Tq, E), randn(B, Tk, C), keep), build=(E, C, H), sizes=sizes)


def probes():
    return [
        probe(2, 5, 6, 12, 7, 3),
        probe(3, 6, 4, 10, 9, 2),
        probe(2, 5, 5, 12, 12, 3),  # all alike: what takes one length or width for another raises nowhere
        probe(2, 5, 5, 12, 9, 3),  # lengths alike, widths not
        probe(2, 5, 6, 12, 12, 3),  # widths alike, lengths not
        probe(4, 3, 7, 15, 8, 5, masked=False),
        probe(2, 3, 4, 8, 6, 2),  # as many keys as features in a head: a product without a transpose raises nowhere
        probe(4, 4, 4, 12, 5, 4),  # as many samples as heads and queries: a mask with too few dimensions raises nowhere
        probe(3, 4, 4, 10, 7, 2, masked=False),  # lengths alike, no mask: what takes the batch for time raises nowhere
    ]


def mask_both(state):
    """Padded positions masked as keys and as queries: an error where the lengths differ."""
    s.mask(state)
    s.mask_transposed(state)
    s.mask(state)


def project_from(q, k, v):
    """q, k and v from x or context; a layer of another width raises, as it does in the attempt."""

    def stage(state):
        state.q = s.linear(state, "q_proj", getattr(state, q))
        state.k = s.linear(state, "k_proj", getattr(state, k))
        state.v = s.linear(state, "v_proj", getattr(state, v))

    return stage


PIPELINES = (
    Pipeline(
        entry="CrossAttention",
        module=True,
        begin=begin,
        stages={
            "project": s.project(),
            "split": s.split_heads,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "sense": s.nothing,
            "shape": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "mix": s.mix,
            "merge": s.merge_heads,
            "output": s.project_out,
        },
        variants=(
            *variants(
                "layout.batch_as_time",
                {"project": s.across_the_batch(s.project()), "output": s.back_to_batch_first(s.project_out)},
                {"split": s.context_across_the_batch(s.split_heads)},
            ),
            *variants("context.swapped", {"project": project_from("context", "x", "x")}),
            *variants(
                "context.ignored",
                {"project": project_from("x", "x", "x")},
                {"project": project_from("x", "context", "x")},
                {"project": project_from("x", "x", "context")},
            ),
            *variants("context.query_length", {"split": s.split_context_by_query_length}),
            *variants("project.key_for_value", {"project": s.project(v="k_proj")}),
            *variants("project.value_for_key", {"project": s.project(k="v_proj")}),
            *variants("project.query_for_value", {"project": s.project(v="q_proj")}),
            *variants("project.exchanged", {"project": s.project(k="v_proj", v="k_proj")}),
            *variants("project.missing", {"project": s.project(q=None)}),
            *variants("project.swapped", {"project": s.project(q="k_proj", k="q_proj")}, {"score": s.score_swapped}),
            *LAYERS,
            *ONE_LAYER,
            *SPLITS,
            *variants(
                "merge.wrong_transpose",
                {"merge": s.merge_transposed_last},
                *({"merge": s.merge_in_order(*order)} for order in s.WRONG_MERGES),
            ),
            *variants("score.not_transposed", {"score": s.score_not_transposed}),
            *variants("scale.missing", {"scale": s.nothing}),
            *variants("scale.embed_dim", {"scale": s.scale_by_embed_dim}),
            *variants("scale.key_length", {"scale": s.scale_by_key_length}, {"scale": s.scale_by_query_length}),
            *variants("scale.heads", {"scale": s.scale_by_heads}),
            *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt}),
            *variants(
                "scale.inverted",
                {"scale": s.scale_inverted},
                {"scale": s.scale_squared_inverted},
                {"scale": s.scale_inverted_embed_dim},
            ),
            *variants("scale.floor_division", {"scale": s.scale_floor_division}),
            *variants(
                "scale.after_softmax",
                {"scale": s.nothing, "rescale": s.scale_weights},
                {"scale": s.nothing, "rescale": s.scale_weights_by_embed_dim},
            ),
            *variants("mask.lost", {"mask": s.nothing}, {"mask": s.mask_made_and_lost}),
            *variants("mask.inverted", {"sense": s.mask_inverted}),
            *variants("mask.zero_fill", {"mask": s.mask_with_zero}),
            *variants("mask.zero_times_inf", {"mask": s.mask_zero_times_inf}, shows_in_values=False),
            *variants(
                "mask.after_softmax",
                {"mask": s.nothing, "remask": s.mask_weights},
                {"mask": s.nothing, "remask": s.fill_weights},
            ),
            *variants("mask.query_axis", {"shape": s.mask_transposed}, {"mask": mask_both}),
            *variants("mask.added", {"mask": s.mask_added}),
            *variants("mask.right_padding_only", {"mask": s.mask_right_padding_only}),
            *variants(
                "mask.broadcast",
                {"shape": s.mask_reshaped(lambda keep: keep[:, 0, 0])},  # (B, Tk) as it was given
                {"shape": s.mask_reshaped(lambda keep: keep[:, 0])},
            ),
            *variants("mask.folded_order", *({"shape": stage} for stage in s.MASKS_FOLDED)),
            *variants("mask.causal", *({"mask": stage} for stage in s.MASKS_AND_CAUSAL)),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants(
                "softmax.head_axis",
                {"normalise": s.softmax_over_heads},
                {"normalise": s.softmax_over(0)},
                {"normalise": s.softmax_over_lead},
            ),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *variants(
                "softmax.missing",
                {"normalise": s.softmax_missing},
                {"normalise": s.softmax_missing_unmasked},
                {"normalise": s.softmax_if_masked},
            ),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            *WEIGHTS,
            *OUTPUTS,
        ),
        probes=probes,
    ),
)

SYMPTOMS = (Symptom(id="arguments.order", shows=heads_first),)


def pictures():
    keep = torch.tensor([[True, True, True, True, False]])
    return (
        of_heads("CrossAttention", (12, 12, 2), heads=2, head_dim=6, length=5, mask=keep, context=True, queries=4),
        of_layout("CrossAttention", (6, 6, 2), heads=2, head_dim=3, length=4, context=True),
    )
