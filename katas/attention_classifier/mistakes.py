"""attention_classifier as a pipeline, and the ways each stage goes wrong."""

import re

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import EXCHANGED, LAYERS, ONE_LAYER, OUTPUTS, SPLITS, WEIGHTS
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom, breaks


def begin(parameters, build, token_ids, keep=None):
    attention = {name.removeprefix("attention."): value for name, value in parameters.items()}
    real = torch.ones_like(token_ids, dtype=torch.bool) if keep is None else keep
    # Without keep there is no mask in the state either: all ways of masking agree there, and one walk of the search is enough.
    flags = None if keep is None else keep[:, None, None, :]
    return State(parameters=attention, ids=token_ids.long(), H=build[2], real=real, keep=flags)


def probe(B, T, vocab, E, H, classes, masked=True):
    keep = None
    if masked:
        keep = torch.rand(B, T) > 0.4
        keep[:, 1] = True  # no sequence is empty
        keep[0, 2] = False
    sizes = {"B": B, "T": T, "Tq": T, "Tk": T, "E": E, "H": H, "D": E // H}
    return Probe(args=(torch.randint(vocab, (B, T)), keep), build=(vocab, E, H, classes), sizes=sizes)


def probes():
    return [
        probe(2, 5, 11, 12, 3, 4),
        probe(3, 4, 9, 10, 2, 6, masked=False),
        probe(3, 6, 13, 15, 5, 4),
        probe(4, 4, 7, 8, 4, 3),  # a mask that is broadcast over samples or queries raises nowhere
    ]


def embed(state):
    """The rows of the embedding."""
    state.x = state.context = state.parameters["embedding.weight"][state.ids]


def embed_scaled(state):
    """Times sqrt(E)."""
    embed(state)
    state.x = state.context = state.x * state.x.shape[-1] ** 0.5


def inverted_always(state):
    """Padding kept, where a call without keep makes flags that are all True, and so hides every token."""
    state.keep = ~state.real[:, None, None, :]


def mask_by(keep, always=False):
    """The padding mask laid on another dimension, as `keep(state)` says; with `always` also in a call without keep."""

    def stage(state):
        if state.keep is None and not always:
            return
        flags = keep(state)
        state.scores = state.scores.masked_fill(~flags, float("-inf"))
        s.note_empty(state, flags.expand(state.scores.shape))

    return stage


def real_first(state):
    """As many tokens taken for real as keep says, but always the first ones: in the attention and in the pooling."""
    state.real = torch.arange(state.real.shape[1]) < state.real.sum(dim=1, keepdim=True)
    state.keep = None if state.keep is None else state.real[:, None, None, :]


def pool(state):
    """The mean over real tokens."""
    kept = state.real[:, :, None].to(state.out.dtype)
    state.out = (state.out * kept).sum(1) / kept.sum(1)


def pool_all(state):
    state.out = state.out.mean(1)


def pool_by_length(state):
    state.out = (state.out * state.real[:, :, None]).sum(1) / state.out.shape[1]


def pool_sum(state):
    state.out = (state.out * state.real[:, :, None]).sum(1)


def pool_sum_of_all_by_real(state):
    """The sum over all positions, divided by the number of real ones."""
    state.out = state.out.sum(dim=1) / state.real.sum(dim=1, keepdim=True).clamp(min=1)


def pool_sum_of_all(state):
    state.out = state.out.sum(1)


def pool_first(state):
    state.out = state.out[:, 0]


def pool_last(state):
    state.out = state.out[:, -1]


def pool_last_real(state):
    place = torch.arange(state.real.shape[1]) * state.real
    state.out = state.out[torch.arange(len(state.out)), place.argmax(1)]


def classify(state):
    """Through classifier."""
    state.out = s.linear(state, "classifier", state.out)
    empty = getattr(state, "empty", None)
    if empty is not None:  # (B, H, T, 1), of queries; the result has one row for each sample
        state.empty = empty.expand(len(state.out), *empty.shape[1:]).flatten(1).any(1, keepdim=True)


def probabilities(state):
    """A softmax of the logits."""
    state.out = state.out.softmax(-1)


def log_probabilities(state):
    state.out = state.out.log_softmax(-1)


PIPELINES = (
    Pipeline(
        entry="AttentionClassifier",
        module=True,
        begin=begin,
        stages={
            "embed": embed,
            "project": s.project(),
            "split": s.split_heads,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "sense": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "mix": s.mix,
            "merge": s.merge_heads,
            "output": s.project_out,
            "pool": pool,
            "classify": classify,
            "squash": s.nothing,
        },
        variants=(
            *variants("embed.scaled", {"embed": embed_scaled}),
            *variants("project.key_for_value", {"project": s.project(v="k_proj")}),
            *ONE_LAYER,
            *variants("project.query_for_value", {"project": s.project(v="q_proj")}),
            *variants("project.value_for_query", {"project": s.project(q="v_proj")}),
            *variants("project.value_for_key", {"project": s.project(k="v_proj")}),
            *EXCHANGED,
            *variants(
                "project.missing",
                {"project": s.project(q=None, k=None, v=None)},
                {"project": s.project(q=None)},
                {"project": s.project(k=None)},
                {"project": s.project(v=None)},
            ),
            *variants("project.swapped", {"score": s.score_swapped}),
            *LAYERS,
            *SPLITS,
            *variants("scale.missing", {"scale": s.nothing}),
            *variants("scale.embed_dim", {"scale": s.scale_by_embed_dim}),
            *variants("scale.key_length", {"scale": s.scale_by_key_length}),
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
            *variants("mask.lost", {"mask": s.nothing}),
            *variants("mask.inverted", {"sense": s.mask_inverted}, {"sense": inverted_always}),
            *variants("mask.zero_fill", {"mask": s.mask_with_zero}),
            *variants("mask.zero_times_inf", {"mask": s.mask_zero_times_inf}, shows_in_values=False),
            *variants(
                "mask.after_softmax",
                {"mask": s.nothing, "remask": s.mask_weights},
                {"mask": s.nothing, "remask": s.fill_weights},
            ),
            *variants("mask.added", {"mask": s.mask_added}),
            *variants("mask.right_padding_only", {"mask": s.mask_right_padding_only}, {"sense": real_first}),
            *variants("mask.causal", *({"mask": stage} for stage in s.MASKS_AND_CAUSAL)),
            *variants(
                "mask.broadcast",
                *({"mask": mask_by(lambda state: state.real, always)} for always in (False, True)),
                *({"mask": mask_by(lambda state: state.real[:, None], always)} for always in (False, True)),
            ),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants("softmax.head_axis", {"normalise": s.softmax_over_heads}),
            *variants("softmax.flattened", {"normalise": s.softmax_over_everything}),
            *variants("softmax.missing", {"normalise": s.softmax_missing}),
            *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
            # The mean over the tokens of their own values is that of values mixed by equal weights, too.
            *(one for one in WEIGHTS if one.id != "mix.own_values"),
            *OUTPUTS,
            *variants("pooling.counts_padding", {"pool": pool_all}, {"pool": pool_sum_of_all_by_real}),
            *variants("pooling.divides_by_length", {"pool": pool_by_length}),
            *variants("pooling.sum", {"pool": pool_sum}, {"pool": pool_sum_of_all}),
            *variants("pooling.one_token", {"pool": pool_first}, {"pool": pool_last}, {"pool": pool_last_real}),
            *variants("classifier.softmax", {"squash": probabilities}, {"squash": log_probabilities}),
        ),
        probes=probes,
    ),
)


def empty_row(evidence):
    """A NaN from a row that is all -inf; one from dividing by no tokens is another mistake."""
    if evidence.nan_where_masked:  # not in empty sequences only
        return None
    told = evidence.failures.get("empty_sequence") or evidence.failures.get("gradients_of_empty_sequence")
    nan = told is not None and re.search(r"is nan|not finite", told.message) and re.search(r"\binf\b", evidence.code)
    return 0 if nan else None


def no_tokens(evidence):
    """A NaN from dividing by no tokens, where no row is all -inf."""
    told = evidence.failures.get("empty_sequence")
    nan = told is not None and re.search(r"is nan", told.message) and not re.search(r"\binf\b", evidence.code)
    if evidence.nan_where_masked:
        return None
    divides = re.search(r"/|\bdiv_?\(|\.mean\(|nanmean", evidence.code)
    return 0 if nan and divides else None


SYMPTOMS = (
    breaks("arguments.unchecked", "heads_must_divide"),
    Symptom(id="mask.empty_row", shows=empty_row),
    Symptom(id="pooling.empty", shows=no_tokens),
)
