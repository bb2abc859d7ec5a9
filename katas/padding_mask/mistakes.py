"""padding_mask as two pipelines, one for each function, and the ways each stage goes wrong."""

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import WEIGHTS
from attn_kata.diagnosis.pictures import of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.properties import randn

# ------------------------------------------------------------------------------------------- padding_mask(lengths, max_len)


def begin_mask(lengths, max_len):
    return State(lengths=lengths, positions=torch.arange(max_len))


def compare(keeps):
    """The mask that keeps where `keeps(position, length)`."""

    def stage(state):
        state.out = keeps(state.positions, state.lengths[:, None])  # (B, max_len)

    return stage


def on_the_left(empty_is_full):
    """The last tokens taken for the real ones; `x[-length:]` is all of them for a length of 0."""

    def stage(state):
        lengths = state.lengths[:, None]
        state.out = state.positions >= len(state.positions) - lengths
        if empty_is_full:
            state.out = state.out | (lengths == 0)

    return stage


def mask_probe(lengths, max_len):
    return Probe(args=(torch.tensor(lengths), max_len), sizes={"B": len(lengths), "max_len": max_len})


def mask_probes():
    return [mask_probe([3, 1, 5, 0], 6), mask_probe([4, 2], 5), mask_probe([7], 7)]


# ------------------------------------------------------------------------------------------ padded_attention(q, k, v, keep)


def begin(q, k, v, keep):
    return State(q=q, k=k, v=v, keep=keep[:, None, None, :], given=keep, H=q.shape[1])


def probe(B, H, Tq, Tk, D, Dv, masked=True):
    keep = torch.rand(B, Tk) > (0.4 if masked else -1)
    keep[:, 1] = True  # no row is empty
    keep[0, 2] = not masked
    sizes = {"B": B, "H": H, "Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv}
    return Probe(args=(randn(B, H, Tq, D), randn(B, H, Tk, D), randn(B, H, Tk, Dv), keep), sizes=sizes)


def probes():
    return [
        probe(2, 3, 5, 6, 7, 4),
        probe(3, 2, 6, 4, 5, 8),
        probe(2, 3, 5, 5, 6, 4),  # a mask laid on the queries raises nowhere here
        probe(4, 4, 4, 4, 3, 2),  # nor one that is broadcast over samples or heads
        probe(2, 3, 4, 5, 7, 3, masked=False),  # a number is left where -inf meets a softmax along another axis
    ]


def mask_both(state):
    """Padded positions masked as keys and as queries."""
    s.mask(state)
    if state.scores.shape[-1] != state.scores.shape[-2]:
        raise RuntimeError("the size of tensor a must match the size of tensor b")
    s.fill(state, state.given[:, None, :, None])


PIPELINES = (
    Pipeline(
        entry="padding_mask",
        begin=begin_mask,
        stages={"mask": compare(lambda position, length: position < length)},
        variants=(
            *variants(
                "mask.inverted",
                {"mask": compare(lambda position, length: position >= length)},
                {"mask": compare(lambda position, length: position > length)},
            ),
            *variants("mask.left_padding", {"mask": on_the_left(False)}, {"mask": on_the_left(True)}),
            *variants(
                "mask.padding_off_by_one",
                {"mask": compare(lambda position, length: position <= length)},
                {"mask": compare(lambda position, length: position < length - 1)},
            ),
        ),
        probes=mask_probes,
    ),
    Pipeline(
        entry="padded_attention",
        begin=begin,
        stages={
            "read": s.nothing,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "sense": s.nothing,
            "shape": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "mix": s.mix,
        },
        variants=(
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
            *variants("mask.lost", {"mask": s.nothing}),
            *variants("mask.inverted", {"sense": s.mask_inverted}),
            *variants("mask.zero_fill", {"mask": s.mask_with_zero}),
            *variants("mask.zero_times_inf", {"mask": s.mask_zero_times_inf}, shows_in_values=False),
            *variants(
                "mask.after_softmax",
                {"mask": s.nothing, "remask": s.mask_weights},
                {"mask": s.nothing, "remask": s.fill_weights},
            ),
            *variants("mask.added", {"mask": s.mask_added}),
            *variants("mask.right_padding_only", {"mask": s.mask_right_padding_only}),
            *variants("mask.causal", *({"mask": stage} for stage in s.MASKS_AND_CAUSAL)),
            *variants("mask.folded_order", *({"shape": stage} for stage in s.MASKS_FOLDED)),
            *variants("mask.query_axis", {"shape": s.mask_transposed}, {"mask": mask_both}),
            *variants(
                "mask.broadcast",
                {"shape": s.mask_reshaped(lambda keep: keep[:, 0, 0])},  # (B, Tk) as it was given
                {"shape": s.mask_reshaped(lambda keep: keep[:, 0])},
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
            *variants("project.swapped", {"score": s.score_swapped}),
            *variants("layout.batch_as_time", {"read": s.context_across_the_batch(s.nothing)}),
            *variants("context.query_length", {"read": s.context_by_query_length}),
        ),
        probes=probes,
    ),
)


def pictures():
    keep = torch.tensor([[True, True, True, False, False]])  # (B, Tk), right padding
    return (of_function("padded_attention", (randn(1, 1, 4, 6), randn(1, 1, 5, 6), randn(1, 1, 5, 3), keep)),)
