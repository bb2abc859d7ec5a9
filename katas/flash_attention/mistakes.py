"""flash_attention as a pipeline: stages choose how the tiles are computed, and `loop` computes them."""

import math

import torch
from torch.nn import functional

from attn_kata.diagnosis.pictures import of_function, of_tiles
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import breaks
from attn_kata.properties import randn

INF = float("inf")


def begin(q, k, v, block_q, block_k, causal=False):
    return State(q=q, k=k, v=v, bq=block_q, bk=block_k, causal=causal)


def probe(B, H, Tq, Tk, D, Dv, bq, bk, causal):
    q, k, v = randn(B, H, Tq, D), randn(B, H, Tk, D), randn(B, H, Tk, Dv)
    return Probe(args=(q, k, v, bq, bk, causal), sizes={"B": B, "H": H, "Tq": Tq, "Tk": Tk, "D": D, "Dv": Dv})


def probe_of_large_scores():
    """Two queries whose scores all lie above 1000, and all below -1000, far apart: one key has all the weight."""
    k = (500 + 100 * torch.arange(6, dtype=torch.float64))[:, None].expand(1, 1, 6, 4).contiguous()
    q = torch.tensor([1.0, -1.0], dtype=torch.float64)[:, None].expand(1, 1, 2, 4).contiguous()
    sizes = {"B": 1, "H": 1, "Tq": 2, "Tk": 6, "D": 4, "Dv": 3}
    return Probe(args=(q, k, randn(1, 1, 6, 3), 1, 2, False), sizes=sizes)


def probes():
    return [
        probe(2, 2, 4, 6, 5, 3, 2, 3, False),
        probe(2, 2, 4, 6, 5, 3, 2, 3, True),
        probe(1, 2, 5, 7, 4, 6, 2, 3, False),
        probe(1, 2, 5, 5, 3, 4, 5, 2, True),
        probe(1, 2, 7, 8, 3, 5, 3, 2, True),
        probe_of_large_scores(),
    ]


def chosen(**choices):
    """The stage that chooses how `loop` computes."""

    def stage(state):
        vars(state).update(choices)

    return stage


def moved(state):
    """By how much a query's position lies behind its place."""
    return state.k.shape[2] - state.q.shape[2]


def own_position(state, first, start):
    """The position of the first query and of the first key of a tile."""
    return first + moved(state), start


def on_the_diagonal_only(state, first, start):
    """Places in the tile where the numbers of both blocks are equal; in other tiles, all keys are seen."""
    return (0, 0) if first // state.bq == start // state.bk else (state.k.shape[2], 0)


def on_equal_starts_only(state, first, start):
    """Places in the tile where both blocks begin at the same number; in other tiles, all keys are seen."""
    return (0, 0) if first == start else (state.k.shape[2], 0)


def later(query, key):
    return key > query


def with_zeros(part, block):
    """Filled up with zeros to whole blocks along the tokens."""
    return functional.pad(part, (0, 0, 0, -part.shape[2] % block))


def whole_blocks(length, block):
    return length // block * block


def lost_rows(state, out, lse):
    """What stands in the rows of queries that no block has: None, or the values of out and of lse."""
    rows = state.q.shape[2] - whole_blocks(state.q.shape[2], state.bq)
    lead = state.q.shape[:2]
    return (
        state.q.new_full((*lead, rows, state.v.shape[-1]), out),
        state.q.new_full((*lead, rows, 1), lse),
    )


def loop(state):
    """Every tile, as the stages before have chosen."""
    outs, lses = [], []
    queries = state.queries(state.q.shape[2], state.bq)
    k, v = (state.filled(part, state.bk) for part in (state.k, state.v))
    for first in range(0, queries, state.bq):
        out, lse = block_of_queries(state, first, k, v)
        outs.append(out)
        lses.append(lse)
    if state.rest is not None and queries < state.q.shape[2]:
        out, lse = lost_rows(state, *state.rest)
        outs.append(out)
        lses.append(lse)
    if not outs:
        outs, lses = lost_rows(state, 0.0, 0.0)[0][None, :, :, :0], lost_rows(state, 0.0, 0.0)[1][None, :, :, :0]
    state.out = torch.cat(tuple(outs), 2) * state.afterwards(state), torch.cat(tuple(lses), 2).squeeze(-1)


def block_of_queries(state, first, all_keys, all_values):
    """out (B, H, n, Dv) and lse (B, H, n, 1) of the block of queries that begins at `first`."""
    q = state.q[:, :, first : first + state.bq] * state.factor(state)
    largest = q.new_full((*q.shape[:3], 1), state.lowest)
    total, out = torch.zeros_like(largest), q.new_zeros(*q.shape[:3], state.v.shape[-1])
    tiles = 0
    for start in range(0, state.keys(all_keys.shape[2], state.bk), state.bk):
        if state.causal and state.hides is not None and state.skips(state, first, start):
            continue
        k, v = all_keys[:, :, start : start + state.bk], all_values[:, :, start : start + state.bk]
        scores = q @ k.transpose(-2, -1)
        if state.causal and state.hides is not None:
            query, key = state.position(state, first, start)
            hidden = state.hides(query + torch.arange(q.shape[2])[:, None], key + torch.arange(k.shape[2]))
            scores = scores.masked_fill(hidden, state.fill)
        tiles += 1
        new = state.larger(largest, scores.amax(-1, keepdim=True))
        shrink = state.shrink(largest, new)
        counts = (scores - new).exp()
        here = counts.sum(-1, keepdim=True)
        total, out = state.add(state, (total, out), shrink, (scores, counts, here, v), tiles)
        largest = new
    return state.end(out, total, tiles), state.lse(largest, total)


def running(state, so_far, shrink, tile, tiles):
    """The running sum and the running result, rescaled."""
    (total, out), (_, counts, here, v) = so_far, tile
    return (
        total * (shrink if state.rescales_total else 1) + here,
        out * (shrink if state.rescales_out else 1) * state.keeps + counts @ v,
    )


def softmax_of_each_tile(state, so_far, shrink, tile, tiles):
    """Each tile's own attention, added up."""
    total, _ = running(state, so_far, shrink, tile, tiles)
    return total, so_far[1] + own_softmax(tile)


def own_softmax(tile):
    scores, _, _, v = tile
    return (scores - scores.amax(-1, keepdim=True)).softmax(-1).nan_to_num(0.0) @ v


def softmax_of_each_tile_rescaled(state, so_far, shrink, tile, tiles):
    """Each tile's own attention, added up, and rescaled as if it were not divided."""
    total, _ = running(state, so_far, shrink, tile, tiles)
    return total, so_far[1] * shrink + own_softmax(tile)


def divided_by_running_sum(state, so_far, shrink, tile, tiles):
    """Each tile by the sum until then."""
    total, _ = running(state, so_far, shrink, tile, tiles)
    _, counts, _, v = tile
    return total, so_far[1] * (shrink if state.rescales_out else 1) + counts @ v / total


def all_divided_by_running_sum(state, so_far, shrink, tile, tiles):
    """Everything so far by the sum until then, again for each tile: what was divided before is not multiplied back."""
    total, out = running(state, so_far, shrink, tile, tiles)
    return total, out / total


def divided_by_own_sum(empty):
    """Each tile by its own sum, and rescaled as if it were not divided. `empty` is what 0 / 0 becomes."""

    def add(state, so_far, shrink, tile, tiles):
        total, _ = running(state, so_far, shrink, tile, tiles)
        _, counts, here, v = tile
        return total, so_far[1] * (shrink if state.rescales_out else 1) + (counts / here).nan_to_num(empty) @ v

    return add


def mean_with_each_tile(state, so_far, shrink, tile, tiles):
    """The mean of the result so far and of the tile's own attention."""
    total, out = softmax_of_each_tile(state, so_far, shrink, tile, tiles)
    return total, out if tiles == 1 else so_far[1] / 2 + (out - so_far[1]) / 2


def divided(out, total, tiles):
    return out / total


def not_divided(out, total, tiles):
    return out


def never(state, first, start):
    """No tile is skipped."""
    return False


def wholly_later(state, first, start):
    """Tiles in which every key is later than every query."""
    return start > min(first + state.bq, state.q.shape[2]) - 1 + moved(state)


def later_numbers(state, first, start):
    return start // state.bk > first // state.bq


def later_starts(state, first, start):
    return start > first + moved(state)


def later_first_places(state, first, start):
    return start > first


def later_places(state, first, start):
    return start > first + state.bq - 1


DEFAULT = {
    "scale": chosen(factor=lambda state: 1 / math.sqrt(state.q.shape[-1])),
    "align": chosen(position=own_position),
    "mask": chosen(hides=later, fill=-INF),
    "skip": chosen(skips=never),
    "maximum": chosen(lowest=-INF, larger=torch.maximum),
    "rescale": chosen(rescales_total=True, rescales_out=True),
    "shrink": chosen(shrink=lambda old, new: (old - new).exp(), keeps=1),
    "divide": chosen(add=running, end=divided),
    "tail": chosen(keys=lambda length, block: length, filled=lambda part, block: part),
    "last_queries": chosen(queries=lambda length, block: length, rest=None),
    "total": chosen(lse=lambda largest, total: largest + total.log()),
    "afterwards": chosen(afterwards=lambda state: 1.0),
    "loop": loop,
}


def by_root(size):
    """The stage that multiplies the scores by size ** -0.5."""
    return chosen(factor=lambda state: 1 / math.sqrt(size(state)))


def head_dim(state):
    return state.q.shape[-1]


PIPELINES = (
    Pipeline(
        entry="flash_attention",
        begin=begin,
        stages=DEFAULT,
        variants=(
            *variants("scale.missing", {"scale": chosen(factor=lambda state: 1.0)}),
            *variants("scale.value_dim", {"scale": by_root(lambda state: state.v.shape[-1])}),
            *variants("scale.embed_dim", {"scale": by_root(lambda state: state.q.shape[1] * head_dim(state))}),
            *variants("scale.key_length", {"scale": by_root(lambda state: state.k.shape[2])}),
            *variants(
                "flash.scale_block",
                {"scale": by_root(lambda state: state.bk)},
                {"scale": by_root(lambda state: state.bq)},
            ),
            *variants("scale.no_sqrt", {"scale": by_root(lambda state: head_dim(state) ** 2)}),
            *variants(
                "scale.inverted",
                {"scale": by_root(lambda state: 1 / head_dim(state))},
                {"scale": by_root(lambda state: 1 / head_dim(state) ** 2)},
            ),
            *variants(
                "scale.after_softmax",
                {
                    "scale": chosen(factor=lambda state: 1.0),
                    "afterwards": chosen(afterwards=lambda state: head_dim(state) ** -0.5),
                },
            ),
            *variants(
                "flash.local_causal",
                {"align": chosen(position=lambda state, first, start: (0, 0))},
                {"align": chosen(position=lambda state, first, start: (moved(state), 0))},
                {"align": chosen(position=lambda state, first, start: (first + moved(state), 0))},
                {"align": chosen(position=on_the_diagonal_only)},
                {"align": chosen(position=on_equal_starts_only)},
                {"align": chosen(position=on_the_diagonal_only), "skip": chosen(skips=later_numbers)},
            ),
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
            *variants("mask.zero_fill", {"mask": chosen(hides=later, fill=0.0)}),
            *variants(
                "flash.tile_skipped",
                *(
                    {"skip": chosen(skips=skips)}
                    for skips in (later_numbers, later_starts, later_first_places, later_places)
                ),
            ),
            *variants("numerics.no_max", {"maximum": chosen(lowest=0.0, larger=lambda old, new: old)}),
            *variants("flash.max_from_zero", {"maximum": chosen(lowest=0.0, larger=torch.maximum)}),
            *variants(
                "flash.max_of_tile",
                {"maximum": chosen(lowest=-INF, larger=lambda old, new: new)},
            ),
            *variants(
                "flash.no_rescale",
                {"rescale": chosen(rescales_total=False, rescales_out=True)},
                {"rescale": chosen(rescales_total=True, rescales_out=False)},
                {"rescale": chosen(rescales_total=False, rescales_out=False)},
                {  # each tile is divided by the sum until then, and what was there before is left as it was
                    "rescale": chosen(rescales_total=True, rescales_out=False),
                    "divide": chosen(add=divided_by_running_sum, end=not_divided),
                },
            ),
            *variants(
                "flash.rescaled_inversely",
                {"shrink": chosen(shrink=lambda old, new: torch.where(old == -INF, 0.0, (new - old).exp()), keeps=1)},
            ),
            *variants(
                "flash.last_tile_only",
                {"shrink": chosen(shrink=lambda old, new: (old - new).exp(), keeps=0)},
                *(  # the maximum is never stored: each tile is the first one
                    {
                        "maximum": chosen(lowest=-INF, larger=lambda old, new: new),
                        "shrink": chosen(shrink=lambda old, new: torch.zeros_like(new), keeps=0),
                        "total": chosen(lse=lse),
                    }
                    for lse in (
                        lambda largest, total: largest + total.log(),
                        lambda largest, total: total.log() - INF,
                    )
                ),
            ),
            *variants(
                "flash.divided_in_block",
                {"divide": chosen(add=softmax_of_each_tile, end=lambda out, total, tiles: out / tiles)},
                {"divide": chosen(add=softmax_of_each_tile, end=not_divided)},
                {"divide": chosen(add=divided_by_running_sum, end=not_divided)},
                {"divide": chosen(add=all_divided_by_running_sum, end=not_divided)},
                {"divide": chosen(add=softmax_of_each_tile_rescaled, end=not_divided)},
                {"divide": chosen(add=softmax_of_each_tile_rescaled, end=divided)},
                *(
                    {"divide": chosen(add=divided_by_own_sum(empty), end=end)}
                    for empty in (0.0, math.nan)
                    for end in (not_divided, divided)
                ),
            ),
            *variants("merge.unweighted", {"divide": chosen(add=mean_with_each_tile, end=not_divided)}),
            *variants("flash.not_divided", {"divide": chosen(add=running, end=not_divided)}),
            *variants(
                "flash.tail_dropped",
                {"tail": chosen(keys=whole_blocks, filled=lambda part, block: part)},
                *(
                    {"last_queries": chosen(queries=whole_blocks, rest=rest)}
                    for rest in (None, (0.0, 0.0), (0.0, -INF), (math.nan, -INF))
                ),
            ),
            *variants("flash.padding_counted", {"tail": chosen(keys=lambda length, block: length, filled=with_zeros)}),
            *variants("lse.without_max", {"total": chosen(lse=lambda largest, total: total.log())}),
            *variants("lse.max", {"total": chosen(lse=lambda largest, total: largest)}),
            *variants("lse.not_logged", {"total": chosen(lse=lambda largest, total: largest.exp() * total)}),
            *variants(
                "merge.log2",
                {"total": chosen(lse=lambda largest, total: largest + total.log2())},
                {"total": chosen(lse=lambda largest, total: (largest + total.log()) / math.log(2))},
            ),
        ),
        probes=probes,
        ways=(
            {"skip": chosen(skips=wholly_later)},
            {"mask": chosen(hides=later, fill=-1e30)},
            {"skip": chosen(skips=wholly_later), "mask": chosen(hides=later, fill=-1e30)},
        ),
    ),
)

SYMPTOMS = (breaks("flash.whole_matrix", "memory", saying="the contract allows"),)


def pictures():
    given = (randn(1, 1, 4, 6), randn(1, 1, 6, 6), randn(1, 1, 6, 3))
    longer = (randn(1, 1, 7, 6), randn(1, 1, 9, 6), randn(1, 1, 9, 3))
    return (
        of_tiles("flash_attention", (*longer, 2, 2, True), block_q=2, block_k=2),
        of_function("flash_attention", (*given, 2, 2, True)),
    )
