"""flash_attention as a pipeline: stages choose how the tiles are computed, and `loop` computes them."""

import math

import torch

from attn_kata.diagnosis.pictures import of_function
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import breaks
from attn_kata.properties import randn

INF = float("inf")


def begin(q, k, v, block_q, block_k, causal=False):
    return State(q=q, k=k, v=v, bq=block_q, bk=block_k, causal=causal)


def probe(B, H, Tq, Tk, D, Dv, bq, bk, causal):
    q, k, v = randn(B, H, Tq, D), randn(B, H, Tk, D), randn(B, H, Tk, Dv)
    return Probe(args=(q, k, v, bq, bk, causal), sizes={"B": B, "H": H, "Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv})


def probes():
    return [
        probe(2, 2, 4, 6, 5, 3, 2, 3, False),
        probe(2, 2, 4, 6, 5, 3, 2, 3, True),
        probe(1, 2, 5, 7, 4, 6, 2, 3, False),
        probe(1, 2, 5, 5, 3, 4, 5, 2, True),
    ]


def chosen(**choices):
    """The stage that chooses how `loop` computes."""

    def stage(state):
        vars(state).update(choices)

    return stage


def own_position(state, first, start):
    """The position of the first query and of the first key of a tile."""
    return first + state.k.shape[2] - state.q.shape[2], start


def loop(state):
    """Every tile, as the stages before have chosen."""
    Tq, Tk = state.q.shape[2], state.k.shape[2]
    keys_used = Tk if state.tail else Tk // state.bk * state.bk
    outs, lses = [], []
    for first in range(0, Tq, state.bq):
        q = state.q[:, :, first : first + state.bq] * state.factor(state)
        largest = q.new_full((*q.shape[:3], 1), -INF)
        total, out = torch.zeros_like(largest), q.new_zeros(*q.shape[:3], state.v.shape[-1])
        tiles = 0
        for start in range(0, keys_used, state.bk):
            k, v = state.k[:, :, start : start + state.bk], state.v[:, :, start : start + state.bk]
            scores = q @ k.transpose(-2, -1)
            if state.causal and state.hides is not None:
                query, key = state.position(state, first, start)
                hidden = state.hides(query + torch.arange(q.shape[2])[:, None], key + torch.arange(k.shape[2]))
                scores = scores.masked_fill(hidden, state.fill)
            tiles += 1
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            shrink = state.shrink(largest, new)
            counts = (scores - new).exp()
            block = counts @ v
            if state.divide == "block":  # each tile by its own sum, added up
                block = (scores - scores.amax(-1, keepdim=True)).softmax(-1).nan_to_num(0.0) @ v
            elif state.divide == "running":  # by the running sum after every tile
                running = total * shrink + counts.sum(-1, keepdim=True)
                block = block / running
            total = total * (shrink if state.rescales_total else 1) + counts.sum(-1, keepdim=True)
            rescales = state.rescales_out and state.divide != "block"
            out = out * (shrink if rescales else 1) * state.keeps + block
            largest = new
        outs.append(out / total if state.divide == "end" else out / tiles if state.divide == "block" else out)
        lses.append(state.lse(largest, total))
    state.out = torch.cat(outs, 2), torch.cat(lses, 2).squeeze(-1)


def later(query, key):
    return key > query


DEFAULT = {
    "scale": chosen(factor=lambda state: 1 / math.sqrt(state.q.shape[-1])),
    "align": chosen(position=own_position),
    "mask": chosen(hides=later, fill=-INF),
    "rescale": chosen(rescales_total=True, rescales_out=True),
    "shrink": chosen(shrink=lambda old, new: (old - new).exp(), keeps=1),
    "divide": chosen(divide="end"),
    "tail": chosen(tail=True),
    "total": chosen(lse=lambda largest, total: largest + total.log()),
    "loop": loop,
}

PIPELINES = (
    Pipeline(
        entry="flash_attention",
        begin=begin,
        stages=DEFAULT,
        variants=(
            *variants("scale.missing", {"scale": chosen(factor=lambda state: 1.0)}),
            *variants("scale.value_dim", {"scale": chosen(factor=lambda state: 1 / math.sqrt(state.v.shape[-1]))}),
            *variants("scale.no_sqrt", {"scale": chosen(factor=lambda state: 1 / state.q.shape[-1])}),
            *variants("scale.inverted", {"scale": chosen(factor=lambda state: math.sqrt(state.q.shape[-1]))}),
            *variants("flash.local_causal", {"align": chosen(position=lambda state, first, start: (0, 0))}),
            *variants("mask.top_left", {"align": chosen(position=lambda state, first, start: (first, start))}),
            *variants("mask.lost", {"mask": chosen(hides=None, fill=-INF)}),
            *variants(
                "mask.shifted",
                {"mask": chosen(hides=lambda query, key: key > query + 1, fill=-INF)},
                {"mask": chosen(hides=lambda query, key: key > query - 1, fill=-INF)},
                {"mask": chosen(hides=lambda query, key: key > query - 1, fill=-1e9)},
            ),
            *variants(
                "mask.upper_triangle",
                *({"mask": chosen(hides=lambda query, key: key < query, fill=fill)} for fill in (-INF, -1e9)),
            ),
            *variants(
                "flash.no_rescale",
                {"rescale": chosen(rescales_total=False, rescales_out=True)},
                {"rescale": chosen(rescales_total=True, rescales_out=False)},
                {"rescale": chosen(rescales_total=False, rescales_out=False)},
            ),
            *variants(
                "flash.rescaled_inversely",
                {"shrink": chosen(shrink=lambda old, new: torch.where(old == -INF, 0.0, (new - old).exp()), keeps=1)},
            ),
            *variants("flash.last_tile_only", {"shrink": chosen(shrink=lambda old, new: (old - new).exp(), keeps=0)}),
            *variants(
                "flash.divided_in_block", {"divide": chosen(divide="block")}, {"divide": chosen(divide="running")}
            ),
            *variants("flash.not_divided", {"divide": chosen(divide="never")}),
            *variants("flash.tail_dropped", {"tail": chosen(tail=False)}),
            *variants("lse.without_max", {"total": chosen(lse=lambda largest, total: total.log())}),
            *variants("lse.max", {"total": chosen(lse=lambda largest, total: largest)}),
            *variants("lse.not_logged", {"total": chosen(lse=lambda largest, total: largest.exp() * total)}),
            *variants("merge.log2", {"total": chosen(lse=lambda largest, total: largest + total.log2())}),
        ),
        probes=probes,
    ),
)

SYMPTOMS = (breaks("flash.whole_matrix", "memory", saying="the contract allows"),)


def pictures():
    given = (randn(1, 1, 4, 6), randn(1, 1, 6, 6), randn(1, 1, 6, 3))
    return (of_function("flash_attention", (*given, 2, 2, True)),)
