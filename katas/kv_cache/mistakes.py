"""kv_cache as a pipeline of one call, and the ways each stage goes wrong. A probe cuts a text into chunks."""

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import breaks
from attn_kata.properties import randn


def begin(parameters, build, x, cache=None):
    return State(parameters=parameters, x=x, context=x, H=build[1], cache=cache)


def probe(*chunks, B, E, H):
    T = sum(chunks)
    sizes = {"B": B, "T": T, "Tq": chunks[-1], "Tk": T, "E": E, "H": H, "D": E // H}
    return Probe(args=(randn(B, T, E), chunks), build=(E, H), sizes=sizes)


def probes():
    return [
        probe(3, 2, 1, B=2, E=12, H=3),
        probe(5, B=2, E=10, H=2),
        probe(1, 1, 1, 1, B=3, E=12, H=2),
        probe(2, 2, 3, B=2, E=8, H=4),  # as many new tokens as past ones, and as features in a head
    ]


def ask(module, x, chunks):
    """The results of the chunks, each with the cache of the one before."""
    outs, cache = [], None
    for chunk in x.split(list(chunks), dim=1):
        out, cache = module(chunk, cache)
        outs.append(out)
    return tuple(outs)


def join(combine, *, kept=lambda past, new, joined: joined):
    """The stage that combines past and new keys and values; `kept` says what is returned as the cache."""

    def stage(state):
        new = (state.k, state.v)
        past = state.cache
        state.k, state.v = new if past is None else (combine(*pair) for pair in zip(past, new, strict=True))
        joined = (state.k, state.v)
        state.kept = tuple(kept(*three) for three in zip(past or new, new, joined, strict=True))

    return stage


def after(past, new):
    return torch.cat([past, new], dim=2)


def before(past, new):
    return torch.cat([new, past], dim=2)


def added(past, new):
    return past + new


def causal(offset, *, with_past=True):
    """The stage that hides later keys; `offset(state)` is the position of the first new token among the keys."""

    def stage(state):
        if state.cache is not None and not with_past:
            return
        queries, keys = state.scores.shape[-2:]
        seen = torch.arange(keys) <= offset(state) + torch.arange(queries)[:, None]
        state.scores = state.scores.masked_fill(~seen, float("-inf"))
        s.note_empty(state, seen)

    return stage


def past_of(state):
    return state.scores.shape[-1] - state.scores.shape[-2]


def give(state):
    state.out = (state.out, state.kept)


joined = join(after)
hidden = causal(past_of)

PIPELINES = (
    Pipeline(
        entry="CachedSelfAttention",
        module=True,
        begin=begin,
        ask=ask,
        stages={
            "project": s.project(),
            "split": s.split_heads,
            "join": joined,
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "mask": hidden,
            "normalise": s.softmax_over_keys,
            "mix": s.mix,
            "merge": s.merge_heads,
            "output": s.project_out,
            "give": give,
        },
        variants=(
            *variants("cache.prepended", {"join": join(before)}),
            *variants("cache.new_only", {"join": join(after, kept=lambda past, new, joined: new)}),
            *variants("cache.not_used", {"join": join(lambda past, new: new)}),
            *variants("cache.kept_from_start", {"join": join(after, kept=lambda past, new, joined: past)}),
            *variants(
                "cache.wrong_axis",
                *({"join": join(lambda past, new, dim=dim: torch.cat([past, new], dim=dim))} for dim in (0, 1, 3)),
            ),
            *variants("cache.added", {"join": join(added)}),
            *variants("cache.top_left", {"mask": causal(lambda state: 0)}),
            *variants("cache.not_causal", {"mask": s.nothing}),
            *variants("cache.chunk_not_causal", {"mask": causal(past_of, with_past=False)}),
            *variants(
                "mask.shifted",
                {"mask": causal(lambda state: past_of(state) + 1)},
                {"mask": causal(lambda state: past_of(state) - 1)},
            ),
            *variants("project.key_for_value", {"project": s.project(v="k_proj")}),
            *variants("project.value_for_key", {"project": s.project(k="v_proj")}),
            *variants("project.query_for_key", {"project": s.project(k="q_proj")}),
            *variants("project.swapped", {"project": s.project(q="k_proj", k="q_proj")}),
            *variants("split.no_transpose", {"split": s.split_no_transpose}),
            *variants("split.interleaved", {"split": s.split_interleaved}),
            *variants("merge.no_transpose", {"merge": s.merge_no_transpose}),
            *variants("scale.missing", {"scale": s.nothing}),
            *variants("scale.embed_dim", {"scale": s.scale_by_embed_dim}),
            *variants("scale.key_length", {"scale": s.scale_by_key_length}),
            *variants("scale.no_sqrt", {"scale": s.scale_no_sqrt}),
            *variants("scale.inverted", {"scale": s.scale_inverted}),
            *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}),
            *variants("softmax.head_axis", {"normalise": s.softmax_over_heads}, {"normalise": s.softmax_over(0)}),
            *variants("softmax.missing", {"normalise": s.softmax_missing}),
            *variants("output.missing", {"output": s.nothing}),
        ),
        probes=probes,
    ),
)

SYMPTOMS = (
    breaks("cache.remembered", "texts_take_turns", saying="take turns|^raised"),
    breaks("cache.in_place", "cache_not_modified", unless=("texts_take_turns",), saying="continuation"),
    breaks("cache.recomputed", "cost", saying="multiplications more"),
    breaks("arguments.unchecked", "heads_must_divide"),
)
