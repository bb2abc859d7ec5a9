"""combined_mask as two pipelines, one for each function, and the ways each stage goes wrong."""

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import WEIGHTS
from attn_kata.diagnosis.pictures import of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import breaks
from attn_kata.properties import randn

# ---------------------------------------------------------------------------------------------- combine_masks(keep, causal)


def begin_mask(keep, causal):
    return State(flags=keep[:, None, None, :], causal=causal)


def keeping(by):
    """The flags (B, 1, 1, Tk) read as `by` makes them."""

    def stage(state):
        state.flags = by(state.flags)

    return stage


def allowing(by):
    """The triangle (Tq, Tk) read as `by` makes it."""

    def stage(state):
        state.causal = by(state.causal)

    return stage


def join(by):
    """The mask that `by(flags, causal)` makes of the two: an error where they do not fit."""

    def stage(state):
        state.out = by(state.flags, state.causal)

    return stage


def both(flags, causal):
    return flags & causal


def keep_on_both(flags, causal):
    """Padded positions masked as keys and as queries: an error where there are not as many of both."""
    if flags.shape[-1] != causal.shape[0]:
        raise RuntimeError("the size of tensor a must match the size of tensor b")
    return flags & flags.transpose(-2, -1) & causal


def always_first(flags):
    """As many keys kept as the flags say, but always the first ones."""
    return torch.arange(flags.shape[-1]) < flags.sum(dim=-1, keepdim=True)


def mask_probe(B, Tq, Tk):
    keep, causal = torch.rand(B, Tk) < 0.6, torch.rand(Tq, Tk) < 0.6
    keep[:, 0], causal[:, 0] = torch.arange(B) % 2 == 0, torch.arange(Tq) % 2 == 1
    return Probe(args=(keep, causal), sizes={"B": B, "Tq": Tq, "Tk": Tk})


def mask_probes():
    return [mask_probe(2, 5, 6), mask_probe(2, 5, 5), mask_probe(4, 4, 6), mask_probe(3, 3, 3)]


# ------------------------------------------------------------------------------------------ masked_attention(q, k, v, mask)


def begin(q, k, v, mask):
    return State(q=q, k=k, v=v, keep=mask, hidden=None, H=q.shape[1])


def mask_with(value):
    """Scores filled with `value` where the mask is False, and these places remembered for `remask`."""

    def stage(state):
        only_noted(state)
        state.scores = state.scores.masked_fill(state.hidden, value)  # raises what it raises in an attempt
        if value == float("-inf"):
            s.note_empty(state, state.keep.expand(state.scores.shape))

    return stage


def only_noted(state):
    """Nothing done to the scores; the masked places are remembered."""
    state.hidden = ~state.keep


def remask(state):
    """Weights of masked keys become 0, also where a row has no other."""
    if state.hidden is not None:
        state.weights = state.weights.masked_fill(state.hidden, 0.0)


def causal_too(state):
    """A causal mask besides the one given."""
    Tq, Tk = state.scores.shape[-2:]
    state.keep = state.keep & torch.ones(Tq, Tk, dtype=torch.bool).tril(Tk - Tq)


def probe(B, H, Tq, Tk, D, Dv, shape):
    mask = torch.rand(*shape) < 0.5
    row, key = torch.arange(shape[-2])[:, None], torch.arange(Tk)
    # Neither rows nor columns are empty.
    mask = (mask | (row % Tk == key) | (key % shape[-2] == row)) & (key != (row + 1) % Tk)
    sizes = {"B": B, "H": H, "Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv}
    return Probe(args=(randn(B, H, Tq, D), randn(B, H, Tk, D), randn(B, H, Tk, Dv), mask), sizes=sizes)


def probes():
    return [
        probe(2, 3, 5, 6, 7, 4, (2, 1, 5, 6)),
        probe(3, 2, 6, 4, 5, 8, (6, 4)),
        probe(2, 3, 5, 5, 6, 4, (2, 3, 5, 5)),  # a mask laid on the queries raises nowhere here
        probe(4, 4, 4, 4, 3, 2, (4, 1, 4, 4)),  # nor one that is broadcast over samples or heads
        probe(2, 3, 4, 7, 5, 6, (2, 1, 1, 7)),
    ]


PIPELINES = (
    Pipeline(
        entry="combine_masks",
        begin=begin_mask,
        stages={"sense": s.nothing, "shape": s.nothing, "causal": s.nothing, "join": join(both)},
        variants=(
            *variants("mask.either", {"join": join(lambda flags, causal: flags | causal)}),
            *variants(
                "mask.lost",
                {"join": join(lambda flags, causal: causal & flags.new_ones(len(flags), 1, 1, 1))},
                {"join": join(lambda flags, causal: flags & torch.ones_like(causal))},
            ),
            *variants(
                "mask.inverted",
                {"join": join(lambda flags, causal: ~both(flags, causal))},
                {"join": join(lambda flags, causal: ~(flags | causal))},
                {"sense": keeping(torch.logical_not)},
                {"causal": allowing(torch.logical_not)},
            ),
            *variants("mask.query_axis", {"shape": keeping(lambda flags: flags.mT)}, {"join": join(keep_on_both)}),
            *variants("mask.right_padding_only", {"shape": keeping(always_first)}),
            *variants(
                "mask.broadcast",
                {"shape": keeping(lambda flags: flags[:, 0, 0])},
                {"shape": keeping(lambda flags: flags[:, 0])},
                {"shape": keeping(lambda flags: flags[None, None, :, 0, 0])},
            ),
        ),
        probes=mask_probes,
    ),
    Pipeline(
        entry="masked_attention",
        begin=begin,
        stages={
            "read": s.nothing,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "sense": s.nothing,
            "shape": s.nothing,
            "mask": mask_with(float("-inf")),
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": remask,
            "mix": s.mix,
        },
        # Without a step after the softmax, the fill decides what a key gets that is hidden from every query.
        ways=({"remask": s.nothing}, {"mask": mask_with(-1e9), "remask": s.nothing}),
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
            *variants("mask.zero_fill", {"mask": s.mask_with_zero}, {"mask": mask_with(0.0)}),
            *variants("mask.zero_times_inf", {"mask": s.mask_zero_times_inf}, shows_in_values=False),
            *variants(
                "mask.after_softmax",
                {"mask": only_noted, "remask": remask},
                {"mask": only_noted, "remask": s.fill_weights},
            ),
            *variants("mask.query_axis", {"shape": s.mask_transposed}),
            *variants("mask.broadcast", {"shape": s.mask_reshaped(lambda mask: mask.unsqueeze(1))}),
            *variants("mask.added", {"mask": s.mask_added}),
            *variants("mask.causal", {"shape": causal_too}),
            *variants(
                "mask.empty_row",
                {"remask": s.nothing},
                {"mask": mask_with(-1e20), "remask": s.nothing},
                shows_in_values=False,
            ),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants("softmax.head_axis", {"normalise": s.softmax_over_heads}),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *variants("softmax.missing", {"normalise": s.softmax_missing}),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            *WEIGHTS,
            *variants("mix.keys", {"mix": s.values_are_keys}),
            *variants("project.swapped", {"score": s.score_swapped}),
            *variants("context.query_length", {"read": s.context_by_query_length}),
        ),
        probes=probes,
    ),
)

SYMPTOMS = (
    breaks(
        "mask.empty_row",
        "empty_rows_get_zero",
        saying="is nan|mean of all values",
        unless=("masked_keys_do_not_matter",),
    ),
    breaks("mask.empty_row", "empty_rows_get_zero", unless=("masked_keys_do_not_matter", "values_with_mask")),
    breaks("mask.empty_row", "empty_rows_have_gradients", saying="not finite"),
    breaks("inputs.modified", "flags_unmodified", saying="was changed by the call"),
    breaks("device.default", "mask_device", saying="default device|made without a device"),
)


def pictures():
    mask = torch.ones(4, 5, dtype=torch.bool).tril(1)
    mask[:, :2] = False  # two tokens of left padding: the first query sees nothing
    return (of_function("masked_attention", (randn(1, 1, 4, 6), randn(1, 1, 5, 6), randn(1, 1, 5, 3), mask)),)
