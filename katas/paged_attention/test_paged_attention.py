"""Hidden tests of paged_attention: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Drawn,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
    check_gradients,
    claims,
    randn,
    standard,
)

ENDS = ("mixed", "one token", "page end", "any")


def sized(*, B, H, G, D, Dv, N, S, M, ends="mixed"):
    return Sizes(B=B, H=H, G=G, D=D, Dv=Dv, N=N, S=S, M=M, ends=ends)


def drawn(*, G, each, M, spare, ends, **sizes):
    return sized(H=G * each, G=G, M=M, N=M + spare, ends=ENDS[ends], **sizes)


SIZES = (
    sized(B=2, H=4, G=2, D=5, Dv=3, N=6, S=3, M=2),
    sized(B=5, H=6, G=2, D=4, Dv=7, N=17, S=3, M=4),
    sized(B=6, H=6, G=3, D=7, Dv=4, N=9, S=4, M=3),  # fewer pages than B * M: some are shared
    sized(B=3, H=5, G=1, D=3, Dv=6, N=9, S=2, M=4, ends="any"),
    sized(B=4, H=3, G=3, D=6, Dv=2, N=12, S=5, M=3, ends="page end"),
    sized(B=5, H=4, G=2, D=3, Dv=5, N=12, S=1, M=6),  # pages of one slot
    sized(B=1, H=6, G=2, D=5, Dv=4, N=7, S=4, M=3, ends="any"),
    sized(B=3, H=4, G=2, D=6, Dv=5, N=4, S=7, M=1),  # one page each
    sized(B=3, H=4, G=2, D=6, Dv=3, N=7, S=5, M=2, ends="one token"),
    sized(B=1, H=1, G=1, D=1, Dv=1, N=1, S=1, M=1),
    sized(B=4, H=4, G=2, D=4, Dv=4, N=16, S=4, M=4),  # equal sizes: a wrong reshape raises nowhere
    sized(B=2, H=1, G=1, D=4, Dv=1, N=5, S=3, M=2),
    sized(B=2, H=4, G=2, D=1, Dv=6, N=5, S=2, M=3),
    sized(B=1, H=4, G=2, D=67, Dv=70, N=3, S=6, M=2, ends="any"),
    sized(B=1, H=1, G=1, D=2, Dv=3, N=75, S=16, M=70, ends="page end"),  # 1,120 slots
    sized(B=40, H=9, G=3, D=2, Dv=3, N=30, S=2, M=3),
    Drawn(drawn, B=(1, 6), G=(1, 3), each=(1, 4), D=(1, 30), Dv=(1, 30), S=(1, 9), M=(1, 6), spare=(0, 8), ends=(0, 3)),
)
SMALL = SIZES[1:3]


def lengths_of(sizes):
    """(B,). "mixed": in turn a length in the middle of a page, at its end, of one token, one token into a page, and all."""
    S, M = sizes.S, sizes.M
    pages = torch.randint(1, M + 1, (sizes.B,))
    if sizes.ends == "any":
        return torch.randint(1, M * S + 1, (sizes.B,))
    if sizes.ends == "one token":
        return torch.ones(sizes.B, dtype=torch.int64)
    if sizes.ends == "page end":
        return pages * S
    kinds = torch.stack(
        [(pages - 1) * S + (S + 1) // 2, pages * S, torch.ones_like(pages), (pages - 1) * S + 1, 0 * pages + M * S]
    )
    return kinds[torch.arange(sizes.B) % 5, torch.arange(sizes.B)]


def table_of(sizes, lengths):
    """(B, M): different pages for a sequence, in any order. Past those in use some are reserved, and the others are -1."""
    table = torch.stack([torch.randperm(sizes.N)[: sizes.M] for _ in range(sizes.B)])
    used = (lengths + sizes.S - 1) // sizes.S
    reserved = (torch.rand(sizes.B) * (sizes.M - used + 1)).long()
    return torch.where(torch.arange(sizes.M) < (used + reserved)[:, None], table, -1)


def in_use(sizes, table, lengths):
    """(N, S) bool: the slots with a token of at least one sequence."""
    held = torch.zeros(sizes.N, sizes.S, dtype=torch.bool)
    for pages, length in zip(table, lengths, strict=True):
        t = torch.arange(int(length))
        held[pages[t // sizes.S], t % sizes.S] = True
    return held


def filled(pages, held, other=None):
    """`pages` with other numbers in all slots that are not held: within ±10, or `other`."""
    noise = 20 * torch.rand_like(pages) - 10 if other is None else torch.full_like(pages, other)
    return torch.where(held[:, :, None, None], pages, noise)


def pages_of(sizes, held):
    """The keys (N, S, G, D) and values (N, S, G, Dv)."""
    shape = sizes.N, sizes.S, sizes.G
    return filled(randn(*shape, sizes.D), held), filled(randn(*shape, sizes.Dv), held)


def memory(sizes):
    """q, the pages, the table and the lengths."""
    lengths = lengths_of(sizes)
    table = table_of(sizes, lengths)
    return randn(sizes.B, sizes.H, sizes.D), *pages_of(sizes, in_use(sizes, table, lengths)), table, lengths


attention = standard.function(
    "paged_attention",
    lambda sizes: [memory(sizes)],
    inputs="q, the pages, the table and the lengths",
    terms=lambda sizes: sizes.M * sizes.S * sizes.D,
    rows="head",
)
test_from_scratch = standard.from_scratch(attention, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[1], SIZES[14]))


@claims(
    "The output is one tensor of shape (B, H, Dv).",
    look_at="which dimension the weights sum over, and how the heads come together again",
    cases=SIZES,
)
def test_output_shape(attempt, sizes):
    assert_shape(attempt.paged_attention(*memory(sizes)), (sizes.B, sizes.H, sizes.Dv))


@claims(
    "The output is softmax(q kᵀ / sqrt(D)) v over the tokens of each sequence.",
    look_at="which slots you read, in which order, how many of them count, and the scale",
    needs="output_shape",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    for what in ("out", "out on a second call: out"):  # the second one has other pages, another table, other lengths
        args = memory(sizes)
        assert_close(
            attempt.paged_attention(*args), reference.paged_attention(*args), atol=1e-5, what=what, rows="head"
        )
    q, *rest = memory(sizes)
    strong = 3 * q  # 1e-4, because an attempt in float32 loses two digits
    right = reference.paged_attention(strong, *rest)
    what = "out with strong scores: out"
    assert_close(attempt.paged_attention(strong, *rest), right, atol=1e-4, what=what, rows="head")


@claims(
    "The table and the lengths may be int32 or int64, each of them.",
    look_at="functions that take one of the two dtypes only",
    needs="output_shape",
    cases=SMALL[:1],
)
def test_integer_dtypes(attempt, sizes):
    *floating, table, lengths = memory(sizes)
    before = attempt.paged_attention(*floating, table, lengths)
    for entries in (torch.int32, torch.int64):
        for counts in (torch.int32, torch.int64):
            out = attempt.paged_attention(*floating, table.to(entries), lengths.to(counts))
            names = [str(dtype).removeprefix("torch.") for dtype in (entries, counts)]
            what = f"out with a table of {names[0]} and lengths of {names[1]}: out"
            assert_close(out, before, atol=1e-5, what=what, rows="head")


# ------------------------------------------------------------------------------------------------------ the memory


@claims(
    "It does not matter where a page lies: pages may be moved if the table says where. Without the table it does matter.",
    look_at="whether each sequence reads the pages of its own row of the table, in the order of the row",
    needs="output_shape",
    cases=SMALL,
)
def test_pages_may_lie_anywhere(attempt, sizes):
    q, k, v, table, lengths = memory(sizes)
    before = attempt.paged_attention(q, k, v, table, lengths)
    order = torch.arange(sizes.N).roll(1)  # what lay in page n lies in page n + 1, and the last page comes first
    renamed = torch.where(table < 0, table, (table + 1) % sizes.N)
    moved = attempt.paged_attention(q, k[order], v[order], renamed, lengths)
    other = attempt.paged_attention(q, k[order], v[order], table, lengths)

    assert_close(moved, before, atol=1e-5, what="out when every page moves, and the table says so: out", rows="head")
    assert_holds(
        bool((other - before).abs().amax() > 1e-3), "out stays the same when all pages move but the table does not"
    )


@claims(
    "The numbers in slots past a length do not matter, nor those of reserved pages and of pages of no sequence. Tokens do.",
    look_at="how many slots of the last page count, and what becomes of reserved pages",
    needs="output_shape",
    cases=(*SMALL, SIZES[8]),
)
def test_slots_past_a_length_do_not_matter(attempt, sizes):
    q, k, v, table, lengths = memory(sizes)
    held = in_use(sizes, table, lengths)
    before = attempt.paged_attention(q, k, v, table, lengths)
    for kind, keys, values in (("keys", filled(k, held), v), ("values", k, filled(v, held))):
        after = attempt.paged_attention(q, keys, values, table, lengths)
        what = f"out when {kind} in slots past every length change: out"
        assert_close(after, before, atol=1e-5, what=what, rows="head")
    for b in range(sizes.B):
        length = int(lengths[b])
        for t, which in ((0, "first"), (length - 1, "last")):
            values = v.clone()
            values[table[b, t // sizes.S], t % sizes.S] += 50.0
            after = attempt.paged_attention(q, k, values, table, lengths)[b]
            moved = bool((after - before[b]).abs().amax() > 1e-6)
            assert_holds(moved, f"out of sequence {b} (length {length}) stays the same when its {which} token changes")


@claims(
    "What the table has past the pages in use does not matter: -1, reserved pages, or more columns.",
    look_at="how you find the number of pages in use, and what -1 does as a page number",
    needs="output_shape",
    cases=SMALL,
)
def test_rest_of_the_table_does_not_matter(attempt, sizes):
    q, k, v, table, lengths = memory(sizes)
    before = attempt.paged_attention(q, k, v, table, lengths)
    past = torch.arange(sizes.M) >= ((lengths + sizes.S - 1) // sizes.S)[:, None]  # (B, M)
    wider = torch.full((sizes.B, sizes.M + 2), -1)
    wider[:, : sizes.M] = table
    reserved = table.clone()
    for row, hidden in zip(reserved, past, strict=True):
        free = [page for page in torch.randperm(sizes.N) if page not in row[~hidden]]
        row[hidden] = torch.tensor(free[: int(hidden.sum())], dtype=row.dtype)
    for what, entries in (
        ("only -1 past the pages in use", table.masked_fill(past, -1)),
        ("a reserved page in every entry past the pages in use", reserved),
        ("two more columns of -1", wider),
    ):
        out = attempt.paged_attention(q, k, v, entries, lengths)
        assert_close(out, before, atol=1e-5, what=f"out with {what}: out", rows="head")


@claims(
    "Sequences may share pages: each gets what it would get from a copy of its own.",
    look_at="whether a page belongs to one sequence only",
    needs="output_shape",
    cases=SMALL[:1],
)
def test_pages_may_be_shared(attempt, sizes):
    q, _, _, _, lengths = memory(sizes)
    shared = torch.randperm(sizes.N)[: sizes.M].repeat(sizes.B, 1)  # one list of pages for all
    forked = shared.clone()  # a common first page, then pages of one's own
    for row in forked:
        others = torch.randperm(sizes.N)
        row[1:] = others[others != row[0]][: sizes.M - 1]
    k, v = randn(sizes.N, sizes.S, sizes.G, sizes.D), randn(sizes.N, sizes.S, sizes.G, sizes.Dv)
    apart = torch.arange(sizes.B * sizes.M).view(sizes.B, sizes.M)
    for what, table in (("all pages shared", shared), ("a shared first page", forked)):
        copied = attempt.paged_attention(q, k[table].flatten(0, 1), v[table].flatten(0, 1), apart, lengths)
        out = attempt.paged_attention(q, k, v, table, lengths)
        assert_close(out, copied, atol=1e-5, what=f"out with {what}, compared with copies: out", rows="head")


# ---------------------------------------------------------------------------------------------- sequences and heads


@claims(
    "Sequences and heads do not mix: another query, another length or another table of one does not change the others.",
    look_at="whether the table, a length or the softmax of one sequence or head reaches another one",
    needs="output_shape",
    cases=SMALL,
)
def test_sequences_and_heads_are_independent(attempt, sizes):
    q, k, v, table, lengths = memory(sizes)
    before = attempt.paged_attention(q, k, v, table, lengths)
    queries = q.clone()
    queries[:, 0] = randn(sizes.B, sizes.D)
    after = attempt.paged_attention(queries, k, v, table, lengths)
    what = "out[:, 1:] when the query of head 0 changes: out"
    assert_close(after[:, 1:], before[:, 1:], atol=1e-5, what=what, rows="head")

    for b in (0, sizes.B - 1):
        rest = torch.arange(sizes.B) != b
        queries, tables, counts = q.clone(), table.clone(), lengths.clone()
        queries[b], counts[b] = randn(sizes.H, sizes.D), 2
        tables[b], tables[b, 0] = -1, (table[b, 0] + 1) % sizes.N
        after = attempt.paged_attention(queries, k, v, tables, counts)
        what = f"out of the others when query, table and length of sequence {b} change: out"
        assert_close(after[rest], before[rest], atol=1e-5, what=what, rows="head")


@claims(
    "Neighbouring query heads share a key-value head: it changes their results, and no others.",
    look_at="in which order k and v are repeated, or queries grouped",
    needs="output_shape",
    cases=SIZES[:3],
)
def test_neighbours_share_a_key_value_head(attempt, sizes):
    q, k, v, table, lengths = memory(sizes)
    before = attempt.paged_attention(q, k, v, table, lengths)
    for group in range(sizes.G):
        own = torch.arange(sizes.H) // (sizes.H // sizes.G) == group  # (H,)
        keys, values = k.clone(), v.clone()
        keys[:, :, group] = randn(sizes.N, sizes.S, sizes.D)
        values[:, :, group] += 0.7
        after = attempt.paged_attention(q, keys, values, table, lengths)

        what = f"out of the other groups' heads, when key-value head {group} changes: out"
        assert_close(after[:, ~own], before[:, ~own], atol=1e-5, what=what, rows="head")
        for head in own.nonzero().flatten().tolist():
            moved = bool((after - before)[:, head].abs().amax() > 1e-3)
            assert_holds(moved, f"key-value head {group} changes, and the result of query head {head} does not")


@claims(
    "The weights of each query sum to 1.",
    look_at="what the softmax normalises, and whether slots past a length keep weight",
    needs="output_shape",
    cases=SMALL,
)
def test_weights_sum_to_one(attempt, sizes):
    q, k, v, table, lengths = memory(sizes)
    ones = filled(torch.ones_like(v), in_use(sizes, table, lengths))  # every token has the value 1
    apart = torch.cat([ones, ones.new_zeros(ones.shape)])  # pages of no sequence, that nothing may read
    more = torch.cat([k, k])

    total = attempt.paged_attention(q, more, apart, table, lengths)
    assert_close(total, torch.ones_like(total), atol=1e-5, what="the sum of a query's weights: out", rows="head")


# ---------------------------------------------------------------------------------------------- true of every kata, core


@claims(
    "Gradients to q are those of the definition.",
    look_at="whether any step is detached, rounded or done in place",
    needs="values",
    cases=(*SMALL, SIZES[6], SIZES[8]),
)
def test_gradients(attempt, reference, sizes):
    args = memory(sizes)
    cotangent = randn(sizes.B, sizes.H, sizes.Dv)
    got = attempt.paged_attention.run(*args, cotangent=cotangent).input_gradients[0]
    right = reference.paged_attention.run(*args, cotangent=cotangent).input_gradients[0]

    assert_holds(got is not None or bool(right.abs().amax() < 1e-5), "no gradient reaches q")
    if got is not None:
        what = "the gradient of q: grad"
        assert_close(got, right, atol=1e-5, what=what, rows="head", columns="column")


test_output_dtype = standard.output_dtype(attention, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(attention, needs="values", cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(attention, needs="output_shape", cases=SMALL)
test_non_contiguous_inputs = standard.non_contiguous_inputs(attention, needs="values", cases=SMALL)
test_device = standard.device(attention, needs="output_shape", cases=SMALL)


# ---------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Gradients reach the pages: 0 in slots that no sequence reads, and the sum over the sequences that share a page.",
    tier="edge",
    look_at="whether keys and values are copied out of the graph",
    needs="values",
    cases=SMALL,
)
def test_pages_gradients(attempt, reference, sizes):
    check_gradients(attempt.paged_attention, reference.paged_attention, *memory(sizes))


@claims(
    "NaN in slots past a length does not reach the result.",
    tier="edge",
    look_at="a weight of 0 times NaN, and which page an entry of -1 reads",
    needs="values",
    cases=SMALL,
)
def test_nan_past_a_length(attempt, reference, sizes):
    q, k, v, table, lengths = memory(sizes)
    right = reference.paged_attention(q, k, v, table, lengths)
    own = in_use(sizes, table[:1], lengths[:1])  # of one sequence: no token of another lies past its length
    for kind, keys, values in (
        ("keys", filled(k, own, float("nan")), v),
        ("values", k, filled(v, own, float("nan"))),
    ):
        out = attempt.paged_attention(q[:1], keys, values, table[:1], lengths[:1])
        what = f"out with NaN among {kind} past the length: out"
        assert_close(out, right[:1], atol=1e-5, what=what, rows="head")


@claims(
    "Scores of about 1e4 in float32 give finite, right results.",
    tier="edge",
    needs="values",
    cases=(sized(B=5, H=4, G=2, D=16, Dv=3, N=12, S=3, M=3),),
    look_at="exp of a large number, and what a hidden score becomes",
)
def test_large_scores(attempt, reference, sizes):
    # Integers, and D = 16, whose root is 4, so that float32 holds every score exactly.
    q, k, v, table, lengths = memory(sizes)
    q, k = (q * 60).round(), (k * 60).round()
    out = attempt.paged_attention(q.float(), k.float(), v.float(), table, lengths)

    assert_close(out, reference.paged_attention(q, k, v.float().double(), table, lengths), atol=1e-3, rows="head")


test_half_precision = standard.half_precision(attention, needs="values", cases=SMALL)
test_float64_throughout = standard.float64_throughout(attention, needs="values", cases=SMALL)
test_own_memory = standard.own_memory(attention, needs="output_shape", cases=(SIZES[0], SIZES[9], SIZES[8]))
