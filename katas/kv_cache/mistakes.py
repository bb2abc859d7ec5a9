"""kv_cache as a pipeline of one call, and the ways each stage goes wrong. A probe cuts a text into chunks."""

import ast
from dataclasses import replace

import torch

from attn_kata.diagnosis import lines
from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import (
    BEHIND_TOKENS,
    EXCHANGED,
    MASKINGS,
    MERGES,
    SCALES,
    SCORES,
    SOFTMAXES,
    SPLITS_OF_SOME,
)
from attn_kata.diagnosis.pictures import of_heads
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom, breaks
from attn_kata.properties import randn


def begin(parameters, build, x, cache=None):
    return State(parameters=parameters, x=x, context=x, H=build[1], cache=cache)


def probe(*chunks, B, E, H):
    T = sum(chunks)
    sizes = {"B": B, "T": T, "Tq": chunks[-1], "Tk": T, "E": E, "H": H, "D": E // H}
    return Probe(args=(randn(B, T, E), chunks), build=(E, H), sizes=sizes)


def probes():
    return [
        probe(5, B=2, E=10, H=2),  # one call: the search tries every set of mistakes on the first probe
        probe(3, 2, 1, B=2, E=12, H=3),
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


def join_and_fold(dim):
    """The stage that joins along samples or heads, where both are then read as one dimension of B * H."""

    def stage(state):
        batch, heads, _, size = state.k.shape
        join(lambda past, new: torch.cat([past, new], dim=dim))(state)
        state.k, state.v = (part.reshape(batch, heads, -1, size) for part in (state.k, state.v))

    return stage


def join_mixed(keys, values):
    """The stage that joins as is right, and keeps these two of (k, v) as the cache."""

    def stage(state):
        join(after)(state)
        state.kept = (state.kept[keys], state.kept[values])

    return stage


def after(past, new):
    return torch.cat([past, new], dim=2)


def before(past, new):
    return torch.cat([new, past], dim=2)


def added(past, new):
    return past + new


def place(offset):
    """The stage that says what is seen; `offset(past)` is the position of the first new token among the keys."""

    def stage(state):
        queries, keys = state.q.shape[-2], state.k.shape[-2]
        positions = offset(keys - queries) + torch.arange(queries)[:, None]
        state.keep = torch.arange(keys) <= positions

    return stage


def place_by_tokens(state):
    """What is seen, of queries and keys that lie before the heads: (B, T, H, D)."""
    queries, keys = state.q.shape[1], state.k.shape[1]
    state.keep = torch.arange(keys) <= keys - queries + torch.arange(queries)[:, None]


def the_first_sees_itself(state):
    """A new token does not see itself, but the first of a text, which would see nothing, does."""
    place(lambda past: past - 1)(state)
    state.keep = state.keep | (torch.arange(state.keep.shape[-1]) == 0)


def no_mask_with_a_past(state):
    place(lambda past: past)(state)
    state.keep = None if state.cache is not None else state.keep


def give(state):
    state.out = (state.out, state.kept)


PIPELINES = (
    Pipeline(
        entry="CachedSelfAttention",
        module=True,
        begin=begin,
        ask=ask,
        hides=True,
        stages={
            "project": s.project(),
            "split": s.split_heads,
            "join": join(after),
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "place": place(lambda past: past),
            "sense": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
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
                *({"join": join_and_fold(dim)} for dim in (0, 1)),
            ),
            *variants(
                "cache.parts_mixed", {"join": join_mixed(1, 0)}, {"join": join_mixed(0, 0)}, {"join": join_mixed(1, 1)}
            ),
            *variants(
                "cache.token_lost",
                {"join": join(after, kept=lambda past, new, joined: joined[:, :, :-1])},
                {"join": join(after, kept=lambda past, new, joined: joined[:, :, 1:])},
            ),
            *variants("cache.added", {"join": join(added)}),
            *variants("cache.top_left", {"place": place(lambda past: 0)}),
            *variants("cache.not_causal", {"mask": s.nothing}),
            *variants("cache.chunk_not_causal", {"place": no_mask_with_a_past}),
            *variants(
                "mask.shifted",
                {"place": place(lambda past: past + 1)},
                {"place": place(lambda past: past - 1)},
                {"place": the_first_sees_itself},
            ),
            *variants("mask.inverted", {"sense": s.mask_inverted}),
            *variants("project.key_for_value", {"project": s.project(v="k_proj")}),
            *variants("project.value_for_key", {"project": s.project(k="v_proj")}),
            *variants("project.query_for_value", {"project": s.project(v="q_proj")}),
            *EXCHANGED,
            *variants("project.query_for_key", {"project": s.project(k="q_proj")}),
            *variants("project.swapped", {"project": s.project(q="k_proj", k="q_proj")}),
            *variants(
                "project.weight_transposed",
                {"project": s.project(by=s.linear_transposed)},
                {"output": s.project_out_transposed},
                {"project": s.project(by=s.linear_transposed), "output": s.project_out_transposed},
            ),
            *variants("split.no_transpose", {"split": s.split_no_transpose}),
            *SPLITS_OF_SOME,
            *(replace(one, stages={**one.stages, "place": place_by_tokens}) for one in BEHIND_TOKENS),
            *variants("split.interleaved", {"split": s.split_interleaved}),
            *SCORES,
            *SCALES,
            *variants("scale.heads", {"scale": s.scale_by_heads}),
            *MASKINGS,
            *SOFTMAXES,
            *MERGES,
        ),
        probes=probes,
    ),
)


def remembers(evidence):
    """Two equal calls differ, and `forward` stores something on the module that is no layer."""
    if not evidence.unsteady or lines.makes_layers_when_called(evidence.source.encode()):
        return None
    try:
        tree = ast.parse(evidence.source)
    except SyntaxError:
        return None
    called = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name != "__init__"]
    kept = [
        node.lineno
        for function in called
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    ]
    return kept[0] if kept else None


SYMPTOMS = (
    Symptom(id="cache.remembered", shows=remembers),
    breaks("cache.prepended", "cache_may_be_cut", saying="not the first of the text, but later ones"),
    breaks("cache.remembered", "texts_take_turns", saying="take turns|^raised"),
    breaks("cache.in_place", "cache_not_modified", unless=("texts_take_turns",), saying="continuation"),
    breaks("cache.recomputed", "cost", saying="the layers read"),
    breaks("arguments.unchecked", "heads_must_divide"),
)


def pictures():
    """What three new tokens see of three past ones and of each other: the weights, computed from the output."""
    picture = of_heads("CachedSelfAttention", (14, 2), heads=2, head_dim=7, length=6, mask=None)
    return (
        replace(
            picture,
            what="the weights of 3 new tokens after a past of 3 (the keys: 3 of the cache, 3 new)",
            ask=lambda module, x: module(x[:, 3:].contiguous(), module(x[:, :3].contiguous())[1])[0],
            rows="new token",
            columns="key, past ones first",
        ),
    )
