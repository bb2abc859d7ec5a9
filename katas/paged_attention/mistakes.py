"""paged_attention as a pipeline, and the ways each stage goes wrong. T = M * S slots of a sequence, in the table's order."""

import math
import re

import torch

from attn_kata.diagnosis import stages as s
from attn_kata.diagnosis.families import GROUPS, MASKINGS, SCALES, VALUES
from attn_kata.diagnosis.pictures import Picture
from attn_kata.diagnosis.pipeline import Pipeline, Probe, State, variants
from attn_kata.diagnosis.symptoms import Symptom
from attn_kata.properties import randn

INF = float("inf")


def begin(q, k_pages, v_pages, block_table, lengths):
    N, S, G, _ = k_pages.shape
    state = State(q=q[:, :, None], k_pages=k_pages, v_pages=v_pages, N=N, S=S, G=G, H=q.shape[1])
    state.B, state.M = block_table.shape
    state.table, state.lengths = block_table.clamp(min=0).long(), lengths.long()[:, None]
    state.t = torch.arange(state.M * S)
    state.used = (state.lengths + S - 1) // S  # (B, 1): pages in use
    state.right = state.t < state.lengths  # (B, T)
    # Without a slot to hide, every way of masking is the same: such a probe rules out most mistakes quickly.
    state.keep = None if bool(state.right.all()) else state.right[:, None, None]
    return state


# --------------------------------------------------------------------- entries: the pages (B, M) that a sequence reads


def entries(rule):
    def stage(state):
        state.pages = rule(state)

    return stage


def of_the_table(state):
    return state.table


def as_they_lie(state):
    return torch.arange(state.M).expand(state.B, -1)


def one_after_another(state):
    return torch.arange(state.B * state.M).view(state.B, state.M)


def after_those_in_use(state):
    """The sequences one after another, each with the pages that it needs."""
    return (state.used.cumsum(0) - state.used + torch.arange(state.M)).clamp(max=state.N - 1)


def from_the_first_on(state):
    return state.table[:, :1] + torch.arange(state.M)


def reordered(order, *, whole):
    """The pages in use in another order, or all entries of the table."""

    def rule(state):
        rows = []
        for row, used in zip(state.table, state.used, strict=True):
            count = state.M if whole else int(used)
            rows.append(torch.cat([order(row[:count]), row[count:]]))
        return torch.stack(rows)

    return rule


def across_the_batch(state):
    """The table (B, M) read as (M, B) as it lies in memory, and transposed: the sequences' entries are mixed."""
    return state.table.reshape(state.M, state.B).t()


def first_table(state):
    return state.table[:1].expand(state.B, -1)


# ---------------------------------------------------------------- places: the slots (B, T) of the whole memory, N * S


def places(page, slot, stride=lambda state: state.S):
    """By the number of an entry, the slot in it, and how far pages lie apart. Raises IndexError where there is none."""

    def stage(state):
        entry, offset = page(state) + 0 * state.t, slot(state) + 0 * state.t
        read = state.t < state.lengths.max()
        if bool((entry[read] >= state.M).any() or (offset[read] >= state.S).any()):
            raise IndexError("index is out of bounds for dimension")
        entry, offset = entry.clamp(max=state.M - 1), offset.clamp(max=state.S - 1)
        place = (state.pages[:, entry] * stride(state) + offset).clamp(max=state.N * state.S - 1)
        state.key_places = state.value_places = place

    return stage


def slots_before_pages(state):
    """Slot 0 of each page in use, then slot 1 of each, …"""
    slot = (state.t // state.used).clamp(max=state.S - 1)  # (B, T)
    place = state.pages.gather(1, state.t % state.used) * state.S + slot
    state.key_places = state.value_places = place


def page_of(state):
    return state.t // state.S


def slot_of(state):
    return state.t % state.S


def packed(state):
    """The tokens of all sequences one after another."""
    place = state.lengths.cumsum(0) - state.lengths + state.t
    state.key_places = state.value_places = place.clamp(max=state.N * state.S - 1)


def one_side(name, pages):
    """Keys or values from other pages than the table's."""

    def stage(state):
        place = pages(state)[:, page_of(state)] * state.S + slot_of(state)
        setattr(state, name, place.clamp(max=state.N * state.S - 1))

    return stage


# --------------------------------------------------------------------------------- gather: k and v (B, G, T, D or Dv)


def gather(layout):
    """By `layout`, which makes (G, T, D) of the slots (T, G, D) of sequence b."""

    def stage(state):
        for name in ("k", "v"):
            slots = getattr(state, f"{name}_pages").flatten(0, 1)  # (N * S, G, D)
            rows = getattr(state, "key_places" if name == "k" else "value_places")
            setattr(state, name, torch.stack([layout(slots[row], state, b) for b, row in enumerate(rows)]))

    return stage


def heads_first(part, state, b):
    return part.transpose(0, 1)


def read_as_heads_first(count):
    """The first `count(state, b)` slots, read as (G, count, D) as they lie in memory."""

    def layout(part, state, b):
        slots, heads, width = part.shape
        first = part[: count(state, b)].reshape(heads, -1, width)
        return torch.cat([first, first.new_zeros(heads, slots - first.shape[1], width)], dim=1)

    return layout


def pages_read_as_heads_first(part, state, b):
    """Each page (S, G, D) read as (G, S, D), and the pages joined."""
    pages = part.unflatten(0, (state.M, state.S))
    return pages.reshape(state.M, state.G, state.S, -1).transpose(0, 1).flatten(1, 2)


# ---------------------------------------------------------------------- length: which slots are read, (B, 1, 1, T) bool


def read(rule):
    """By `rule(state)`, (B, T) bool or what broadcasts to it."""

    def stage(state):
        kept = rule(state) & torch.ones_like(state.right)
        state.keep = None if bool(kept.all()) else kept[:, None, None]

    return stage


def whole_pages(state):
    return state.t < state.used * state.S


def full_pages(state):
    """Pages that are full, and the first one."""
    return state.right & (state.t < (state.lengths // state.S).clamp(min=1) * state.S)


def full_pages_alone(state):
    """Pages that are full; there may be none."""
    return state.right & (state.t < state.lengths // state.S * state.S)


def no_weight_for_nan(state):
    """A sequence that reads no slot gets 0, as the sum over nothing."""
    state.weights = state.weights.nan_to_num(0.0)


def remainder_of_last(state):
    """As many slots of the last page as the remainder says: none of a full one."""
    return state.t < (state.used - 1) * state.S + state.lengths % state.S


def with_reserved_pages(state):
    """All pages in the table, and of the last one as many slots as of the last page in use."""
    return state.t < (state.M - 1) * state.S + (state.lengths - 1) % state.S + 1


def with_one_owner(state):
    """The slots of pages that no later sequence uses, too."""
    owner = torch.full((state.N,), -1)
    for b, used in enumerate(state.used):
        owner[state.table[b, : int(used)]] = b
    own_page = owner[state.table] == torch.arange(state.B)[:, None]  # (B, M)
    return state.right & own_page.repeat_interleave(state.S, dim=1)


def zeros_past_the_length(state):
    hidden = ~state.right[:, None, :, None]
    state.k, state.v = state.k.masked_fill(hidden, 0.0), state.v.masked_fill(hidden, 0.0)


def inverted(state):
    state.keep = torch.zeros_like(state.right)[:, None, None] if state.keep is None else ~state.keep


def each_page_cut(state):
    """Of each page in use, as many slots as the sequence has tokens: all of a page that is no longer than that."""
    return (state.t % state.S < state.lengths) & whole_pages(state)


# ------------------------------------------------------------------------------------ normalise: weights (B, H, 1, T)


def over(*dims, groups=False):
    """Softmax along these dimensions of (B, H, 1, T), or of (B, G, H / G, T). A hidden slot gets 0, as where it is not read."""

    def stage(state):
        shape = state.scores.shape
        scores = state.scores.reshape(shape[0], state.G, -1, shape[-1]) if groups else state.scores
        top = scores.amax(dims, keepdim=True)
        counts = (scores - torch.where(top == -INF, 0.0, top)).exp()
        weights = counts / counts.sum(dims, keepdim=True).clamp(min=1e-300)
        state.weights = weights.reshape(shape)

    return stage


def in_groups(dim):
    """The softmax over a dimension of (B, G, H / G, T), as an einsum makes the scores; NaN where all are hidden."""

    def stage(state):
        state.weights = state.scores.squeeze(2).unflatten(1, (state.G, -1)).softmax(dim).reshape(state.scores.shape)

    return stage


def by_page(weigh):
    """Weights by `weigh(p, m, M)`: for each page p = exp(s - m), m the running maximum (B, H, 1, pages, 1), M the last one."""

    def stage(state):
        scores = state.scores.unflatten(-1, (state.M, state.S))
        running = scores.amax(-1, keepdim=True).cummax(dim=-2).values
        weights = weigh((scores - running).exp(), running, running[..., -1:, :])
        state.weights = weights.flatten(-2)

    return stage


def sums(p):
    return p.sum((-2, -1), keepdim=True)


def last_page(p, m, last):
    """The result of the last page in use alone, divided by the sum over all."""
    held = p.amax(-1, keepdim=True) > 0
    page = held & (held.flip(-2).cumsum(-2).flip(-2) == 1)
    return p * page / sums(p * (m - last).exp())


def by_the_maximum_of_each_page(state):
    scores = state.scores.unflatten(-1, (state.M, state.S))
    counts = (scores - scores.amax(-1, keepdim=True)).exp().nan_to_num(0.0)
    state.weights = (counts / sums(counts)).flatten(-2)


def softmax_per_page(*, mean):
    def stage(state):
        scores = state.scores.unflatten(-1, (state.M, state.S))
        weights = scores.softmax(-1).nan_to_num(0.0)
        count = (scores > -INF).any(-1, keepdim=True).sum(-2, keepdim=True) if mean else 1
        state.weights = (weights / count).flatten(-2)

    return stage


def exp_alone(state):
    state.weights = (state.scores - state.scores.amax(-1, keepdim=True)).exp()


def give(state):
    state.out = state.out.squeeze(2)


def give_groups_put_back(state):
    """The heads (H / G, G) read as (G, H / G)."""
    state.out = state.out.unflatten(1, (-1, state.G)).transpose(1, 2).flatten(1, 2)
    give(state)


def give_groups_in_turn(state):
    s.groups_in_turn(state)
    give(state)


MEMORY = (
    *variants(
        "paged.table_ignored",
        *(
            {"entries": entries(rule)}
            for rule in (as_they_lie, one_after_another, after_those_in_use, from_the_first_on)
        ),
        {"places": packed},
    ),
    *variants(
        "paged.page_order",
        {"entries": entries(reordered(lambda row: row.sort().values, whole=False))},
        {"entries": entries(reordered(lambda row: row.flip(0), whole=False))},
        {"entries": entries(reordered(lambda row: row.flip(0), whole=True))},
        {"entries": entries(reordered(lambda row: row.sort().values, whole=True))},
        {"entries": entries(reordered(lambda row: row.sort(descending=True).values, whole=True))},
    ),
    *variants("paged.table_transposed", {"entries": entries(across_the_batch)}),
    *variants(
        "paged.first_sequence",
        {"entries": entries(first_table)},
        {"length": read(lambda state: state.t < state.lengths[0])},
        {"entries": entries(first_table), "length": read(lambda state: state.t < state.lengths[0])},
    ),
    *variants(
        "paged.slot_order",
        {"places": places(lambda state: state.t % state.M, lambda state: state.t // state.M)},
        {"places": places(slot_of, page_of)},
        {"places": slots_before_pages},
    ),
    *variants(
        "paged.wrong_address",
        {"places": places(page_of, slot_of, stride=lambda state: 1)},
        {"places": places(page_of, slot_of, stride=lambda state: state.M)},
    ),
    *variants(
        "paged.one_side",
        *(
            {"sides": one_side(name, rule)}
            for name in ("value_places", "key_places")
            for rule in (as_they_lie, one_after_another)
        ),
    ),
    *variants(
        "paged.heads_and_slots",
        {"gather": gather(pages_read_as_heads_first)},
        {"gather": gather(read_as_heads_first(lambda state, b: state.M * state.S))},
        {"gather": gather(read_as_heads_first(lambda state, b: int(state.used[b]) * state.S))},
        {"gather": gather(read_as_heads_first(lambda state, b: int(state.lengths[b])))},
    ),
)
LENGTHS = (
    *variants("paged.length_ignored", {"length": read(lambda state: state.t >= 0)}),
    *variants("paged.length_in_pages", {"length": read(lambda state: state.t < state.lengths * state.S)}),
    *variants("paged.longest", {"length": read(lambda state: state.t < state.lengths.max())}),
    *variants(
        "paged.last_page_whole",
        {"length": read(whole_pages)},
        {"length": read(lambda state: state.t < (state.lengths // state.S + 1) * state.S)},
    ),
    *variants(
        "paged.each_page_cut",
        {"length": read(each_page_cut)},
        {"length": read(lambda state: state.t % state.S < state.lengths)},
    ),
    *variants(
        "paged.last_page_dropped",
        {"length": read(full_pages)},
        {"length": read(full_pages_alone), "rescale": no_weight_for_nan},
    ),
    *variants("paged.full_page_lost", {"length": read(remainder_of_last)}),
    *variants(
        "paged.off_by_one",
        {"length": read(lambda state: state.t <= state.lengths)},
        {"length": read(lambda state: (state.t <= state.lengths) & whole_pages(state))},
        {"length": read(lambda state: state.t < state.lengths - 1)},
        {"length": read(lambda state: state.right & (state.t > 0))},
    ),
    *variants("paged.reserved_counted", {"length": read(with_reserved_pages)}),
    *variants("paged.first_page_only", {"length": read(lambda state: state.right & (state.t < state.S))}),
    *variants("paged.pages_not_shared", {"length": read(with_one_owner)}),
    *variants(
        "paged.zeros_counted",
        *(
            {"length": read(rule), "blank": zeros_past_the_length}
            for rule in (lambda state: state.t >= 0, lambda state: state.t < state.lengths.max(), whole_pages)
        ),
    ),
    *variants("mask.inverted", {"sense": inverted}),
)
WEIGHTS = (
    *variants("softmax.query_axis", {"normalise": s.softmax_over_queries}, {"normalise": over(2)}),
    *variants(
        "softmax.head_axis",
        {"normalise": over(1)},
        {"normalise": over(0)},
        {"normalise": over(1, groups=True)},
        {"normalise": over(2, groups=True)},
        {"normalise": in_groups(1)},
        {"normalise": in_groups(2)},
        {"normalise": s.softmax_over_heads},
        {"normalise": s.softmax_over(0)},
    ),
    *variants("softmax.flattened", {"normalise": over(1, 3)}, {"normalise": over(2, 3, groups=True)}),
    *variants("softmax.missing", {"normalise": s.softmax_missing}, {"normalise": s.softmax_missing_unmasked}),
    *variants("softmax.sigmoid", {"normalise": s.softmax_sigmoid}),
    *variants("softmax.not_normalised", {"normalise": exp_alone}),
    *variants("paged.softmax_per_page", *({"normalise": softmax_per_page(mean=mean)} for mean in (True, False))),
    *variants(
        "flash.no_rescale",
        {"normalise": by_page(lambda p, m, last: p / sums(p * (m - last).exp()))},
        {"normalise": by_page(lambda p, m, last: p * (m - last).exp() / sums(p))},
        {"normalise": by_page(lambda p, m, last: p / sums(p))},
        {"normalise": by_the_maximum_of_each_page},
    ),
    *variants(
        "flash.rescaled_inversely",
        {"normalise": by_page(lambda p, m, last: p * (last - m).exp() / sums(p * (last - m).exp()))},
    ),
    *variants("flash.last_tile_only", {"normalise": by_page(last_page)}),
)


def probe(H, G, S, D, Dv, N, table, lengths):
    table, lengths = torch.tensor(table), torch.tensor(lengths)
    B, T = len(table), table.shape[1] * S
    pages = randn(N, S, G, D), randn(N, S, G, Dv)
    sizes = {"B": B, "H": H, "D": D, "Dv": Dv, "Tk": T}
    return Probe(args=(randn(B, H, D), *pages, table, lengths), sizes=sizes)


def probes():
    """No entry is -1: which page is read there is free. Every sequence has two tokens or more: no mistake leaves it nothing."""
    return [
        probe(4, 2, 3, 5, 4, 5, [[3, 1], [2, 0]], [6, 6]),
        probe(6, 2, 4, 6, 3, 14, [[7, 2, 10], [9, 4, 1], [7, 0, 5]], [6, 8, 11]),
        probe(6, 3, 2, 4, 7, 8, [[5, 1], [3, 6]], [3, 4]),
        probe(4, 2, 3, 7, 5, 13, [[8, 3, 6, 1], [2, 9, 11, 4]], [7, 2]),  # a sequence that does not fill a page
    ]


PIPELINES = (
    Pipeline(
        entry="paged_attention",
        begin=begin,
        stages={
            "entries": entries(of_the_table),
            "places": places(page_of, slot_of),
            "sides": s.nothing,
            "gather": gather(heads_first),
            "length": s.nothing,
            "blank": s.nothing,
            "group": s.group_by(s.neighbours_share),
            "score": s.score,
            "scale": s.scale_by_head_dim,
            "sense": s.nothing,
            "mask": s.mask,
            "normalise": s.softmax_over_keys,
            "rescale": s.nothing,
            "remask": s.nothing,
            "mix": s.mix,
            "give": give,
        },
        variants=(
            *MEMORY,
            *LENGTHS,
            *GROUPS,
            *variants("score.reshaped", {"score": s.score_reshaped}),
            *SCALES,
            *variants("scale.key_length", {"scale": s.scale(lambda state: state.lengths[:, :, None, None].sqrt())}),
            *variants("scale.kv_width", {"scale": s.scale(lambda state: math.sqrt(state.q.shape[-1] * state.G))}),
            *VALUES,
            *MASKINGS,
            *WEIGHTS,
            *variants("merge.group_order", {"give": give_groups_in_turn}, {"give": give_groups_put_back}),
        ),
        probes=probes,
    ),
)


def raised_saying(words):
    def shows(evidence):
        return next((raised.line or 0 for raised in evidence.all_raised() if re.search(words, raised.text)), None)

    return shows


SYMPTOMS = (
    Symptom(
        id="paged.absent_page",
        shows=raised_saying("index -1 is out of|index out of range in self|non-negative"),
    ),
    Symptom(
        id="paged.index_dtype", shows=raised_saying("LongTensor|should be Long|xpected (a long tensor|dtype int64)")
    ),
)


def pictures():
    table, lengths = torch.tensor([[2, 0], [1, -1], [3, 1]]), torch.tensor([3, 1, 4])
    v_pages = torch.eye(8, dtype=torch.float64).view(
        4, 2, 1, 8
    )  # column c of a result: the weight of slot c of the memory
    return (
        Picture(
            entry="paged_attention",
            what="weights; the pages are 2 0, 1 and 3 1, the lengths 3, 1, 4",
            read=lambda out: out[:, 0],
            args=(randn(3, 1, 4), randn(4, 2, 1, 4), v_pages, table, lengths),
            rows="sequence",
            columns="slot of the memory, two a page",
        ),
    )
