"""Hidden tests of alibi: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Drawn,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
    claims,
    randn,
    standard,
)


def drawn(*, Tq, past, **sizes):
    return Sizes(**sizes, Tq=Tq, Tk=Tq + past)


HEADS = tuple(Sizes(H=H) for H in (8, 4, 1, 2, 16, 64))
OTHER_HEADS = tuple(Sizes(H=H) for H in (3, 6, 5, 7, 12, 20, 48))
ANY_HEADS = Drawn(H=(1, 80))
SIZES = (
    Sizes(B=2, H=4, Tq=3, Tk=3, D=5, Dv=6),
    Sizes(B=3, H=2, Tq=4, Tk=6, D=7, Dv=5),
    Sizes(B=2, H=3, Tq=5, Tk=5, D=6, Dv=4),
    Sizes(B=2, H=6, Tq=1, Tk=5, D=4, Dv=3),
    Sizes(B=4, H=4, Tq=4, Tk=4, D=4, Dv=4),
    Sizes(B=4, H=2, Tq=1, Tk=1, D=3, Dv=5),
    Sizes(B=1, H=1, Tq=3, Tk=6, D=1, Dv=2),
    Sizes(B=2, H=5, Tq=3, Tk=4, D=2, Dv=1),
    Sizes(B=1, H=12, Tq=3, Tk=4, D=70, Dv=66),
    Sizes(B=2, H=3, Tq=131, Tk=150, D=9, Dv=2),
    Drawn(drawn, B=(1, 3), H=(1, 9), Tq=(1, 30), past=(0, 9), D=(1, 90), Dv=(1, 90)),
)
SMALL = SIZES[:2]  # as many queries as keys; then fewer


def qkv(sizes):
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv)."""
    lead = sizes.B, sizes.H
    return randn(*lead, sizes.Tq, sizes.D), randn(*lead, sizes.Tk, sizes.D), randn(*lead, sizes.Tk, sizes.Dv)


def one_hot_values(sizes):
    """(B, H, Tk, Tk): with these values the output is the weights."""
    return torch.eye(sizes.Tk, dtype=torch.float64).expand(sizes.B, sizes.H, -1, -1).contiguous()


attention = standard.function(
    "alibi_attention", lambda sizes: [qkv(sizes)], inputs="q, k and v", terms=lambda sizes: sizes.Tk * sizes.D
)
test_from_scratch = standard.from_scratch(attention, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[1], SIZES[9]))


# ----------------------------------------------------------------------------------------------------- the slopes


@claims(
    "The slopes are one floating tensor of shape (H,).",
    cases=(*HEADS[:3], *OTHER_HEADS[:2]),
    look_at="what is returned",
)
def test_slopes_shape(attempt, sizes):
    slopes = attempt.alibi_slopes(sizes.H)

    assert_shape(slopes, (sizes.H,), what="the slopes")
    assert_holds(slopes.is_floating_point(), f"the slopes are {str(slopes.dtype).removeprefix('torch.')}, not floating")


@claims(
    "For a power of two, the slope of head h is 2 ** (-8 (h + 1) / H).",
    look_at="the first slope, the factor between two, and whether h counts from 0",
    needs="slopes_shape",
    cases=HEADS,
)
def test_slopes(attempt, reference, sizes):
    right = reference.alibi_slopes(sizes.H)

    assert_close(attempt.alibi_slopes(sizes.H), right, atol=0.0, rtol=1e-6, what="slopes", rows="head", columns="head")


@claims(
    "For other numbers of heads: the slopes of the power of two below, then every other one of the power of two above.",
    look_at="which slopes are added, and in which order",
    needs="slopes",
    cases=(*OTHER_HEADS, ANY_HEADS),
)
def test_slopes_of_other_numbers(attempt, reference, sizes):
    right = reference.alibi_slopes(sizes.H)

    assert_close(attempt.alibi_slopes(sizes.H), right, atol=0.0, rtol=1e-6, what="slopes", rows="head", columns="head")


# -------------------------------------------------------------------------------------------------- the attention


@claims(
    "The output is one tensor of shape (B, H, Tq, Dv).", cases=SIZES, look_at="the shapes that the slopes broadcast to"
)
def test_output_shape(attempt, sizes):
    assert_shape(attempt.alibi_attention(*qkv(sizes)), (sizes.B, sizes.H, sizes.Tq, sizes.Dv))


@claims(
    "The output is the causal softmax(q kᵀ / sqrt(D) - slope (p - j)) v.",
    look_at="the scale, the bias of each head, the dimension of the softmax, and the mask",
    needs="output_shape",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    for what in ("out", "out on a second call: out"):
        q, k, v = qkv(sizes)
        right = reference.alibi_attention(q, k, v)

        assert_close(attempt.alibi_attention(q, k, v), right, atol=1e-5, what=what)


@claims(
    "If all scores are equal, each step towards the query multiplies a key's weight by exp(slope of the head).",
    look_at="the sign of the bias, its slope in each head, and what is divided by sqrt(D)",
    needs="output_shape",
    cases=SMALL,
)
def test_nearer_keys_weigh_more(attempt, reference, sizes):
    q, k, _ = qkv(sizes)
    weights = attempt.alibi_attention(0 * q, k, one_hot_values(sizes))[0]  # (H, Tq, Tk)
    slopes = reference.alibi_slopes(sizes.H)
    for head in range(sizes.H):
        ratio = weights[head, -1, 1:] / weights[head, -1, :-1]
        right = slopes[head].exp().expand_as(ratio)
        what = f"weight of a key over that of the key before it, for the last query of head {head}: ratio"

        assert_close(ratio, right, atol=1e-5, what=what, rows="key", columns="key")


@claims(
    "A query's output does not depend on keys or values after its own position, and it does on each earlier one.",
    look_at="whether masked scores become so low that their weight is 0, and where the diagonal lies",
    needs="output_shape",
    cases=SMALL,
)
def test_causal(attempt, sizes):
    q, k, _ = qkv(sizes)
    weights = attempt.alibi_attention(q, k / 2, one_hot_values(sizes))  # (B, H, Tq, Tk)
    may = torch.ones(sizes.Tq, sizes.Tk, dtype=torch.bool).tril(sizes.Tk - sizes.Tq)
    wrong = (weights.abs() > 1e-7) != may
    if bool(wrong.any()):
        sample, head, query, key = (int(i) for i in wrong.nonzero()[0])
        place = f"query {query}, which stands at position {query + sizes.Tk - sizes.Tq}"

        assert_holds(False, f"{place}, gives key {key} the weight {float(weights[sample, head, query, key]):.4f}")


@claims(
    "Each query's weights over the keys it may attend to sum to 1: if all values are equal, the output is that value.",
    look_at="whether bias and mask act before the softmax, and which dimension the softmax normalises",
    needs="output_shape",
    cases=SMALL,
)
def test_weights_sum_to_one(attempt, sizes):
    q, k, v = qkv(sizes)
    same = v[..., :1, :].expand_as(v).contiguous()  # (B, H, Tk, Dv), one value for every key
    out = attempt.alibi_attention(q, k, same)

    assert_close(out, same[..., :1, :].expand_as(out), atol=1e-5, what="out when all values are equal: out")


@claims(
    "The queries are the last Tq positions: the last queries give the same output alone as among all queries.",
    look_at="the positions of the queries, in the bias and in the mask",
    needs="output_shape",
    cases=(SIZES[1], SIZES[3]),
)
def test_last_queries_alone(attempt, sizes):
    q, k, v = qkv(sizes)
    every = torch.cat([randn(sizes.B, sizes.H, sizes.Tk - sizes.Tq, sizes.D), q], dim=-2)  # (B, H, Tk, D)
    among_all = attempt.alibi_attention(every, k, v)[..., -sizes.Tq :, :]
    alone = attempt.alibi_attention(q, k, v)

    assert_close(alone, among_all, atol=1e-5, what=f"out of the last {sizes.Tq} of {sizes.Tk} queries: out")


@claims(
    "Samples, heads and queries do not mix: changing one does not change the others.",
    look_at="whether the softmax or a reshape reaches across the batch, the heads or the queries",
    needs="output_shape",
    cases=SMALL,
)
def test_samples_heads_and_queries_are_independent(attempt, sizes):
    q, k, v = qkv(sizes)
    before = attempt.alibi_attention(q, k, v)
    every = slice(None)
    for place, rest, parts in (
        ((0,), (slice(1, None),), (q, k, v)),  # the first sample
        ((every, 0), (every, slice(1, None)), (q, k, v)),  # the first head
        ((every, every, 0), (every, every, slice(1, None)), (q,)),  # the first query
    ):
        changed = [part.clone() for part in parts]
        for part in changed:
            part[place] = randn(*part[place].shape)
        after = attempt.alibi_attention(*changed, *(q, k, v)[len(parts) :])

        what = "out of the others when one sample, head or query changes: out"
        assert_close(after[rest].nan_to_num(), before[rest].nan_to_num(), atol=1e-5, what=what)


test_gradients = standard.gradients(attention, needs="values", cases=SIZES[:6])
test_output_dtype = standard.output_dtype(attention, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(attention, needs="values", cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(attention, needs="output_shape", cases=(SIZES[0], SIZES[4]))
test_non_contiguous_inputs = standard.non_contiguous_inputs(attention, needs="values", cases=SMALL)
test_device = standard.device(attention, needs="output_shape", cases=(SIZES[0], SIZES[2]))


# ---------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Scores of about 1e4 in float32 give finite, right results, masked keys included.",
    tier="edge",
    needs="values",
    cases=SMALL,
    look_at="exp of a large number, and weights that were 0 before the mask",
)
def test_large_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    q, k = (q * 100).round(), (k * 100).round()  # integers, so that float32 scores are nearly exact
    k[..., : sizes.Tk - sizes.Tq + 1, :] = -q[..., :1, :]  # all keys that the first query sees have low scores
    out = attempt.alibi_attention(q.float(), k.float(), v.float())

    assert_close(out, reference.alibi_attention(q, k, v), atol=1e-2)


test_half_precision = standard.half_precision(attention, needs="values", cases=SMALL, terms=lambda sizes: sizes.Tk)
test_float64_throughout = standard.float64_throughout(attention, needs="values", cases=(SIZES[0], SIZES[8]))
test_own_memory = standard.own_memory(attention, needs="output_shape", cases=(SIZES[0], SIZES[4], SIZES[5]))
