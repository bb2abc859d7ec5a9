"""Hidden tests of linear_attention: each tests one property of the contract in prompt.md."""

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


def square(*, T, **sizes):
    return Sizes(**sizes, Tq=T, Tk=T)


# All lengths; the first, and every case with one length, is asked with causal=True too.
SIZES = (
    Sizes(B=2, H=3, Tq=4, Tk=4, D=5, Dv=6),
    Sizes(B=3, H=2, Tq=4, Tk=6, D=7, Dv=5),
    Sizes(B=2, H=3, Tq=6, Tk=4, D=3, Dv=7),
    Sizes(B=3, H=3, Tq=3, Tk=3, D=3, Dv=3),
    Sizes(B=4, H=2, Tq=1, Tk=1, D=6, Dv=5),
    Sizes(B=1, H=4, Tq=5, Tk=5, D=1, Dv=3),
    Sizes(B=2, H=1, Tq=5, Tk=5, D=3, Dv=1),
    Sizes(B=1, H=2, Tq=3, Tk=3, D=70, Dv=66),
    Sizes(B=2, H=2, Tq=131, Tk=131, D=3, Dv=2),
    Drawn(square, B=(1, 3), H=(1, 4), T=(1, 30), D=(1, 80), Dv=(1, 80)),
    Drawn(B=(1, 3), H=(1, 4), Tq=(1, 30), Tk=(1, 30), D=(1, 80), Dv=(1, 80)),
)
SMALL = SIZES[:2]
SQUARE = (SIZES[0], *SIZES[3:10])


def qkv(sizes):
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv). Entries within ±5; no denominator is below 1.

    In column 0 queries and keys are at least 0.5: this pair of features alone gives each product 2.25.
    """
    lead = sizes.B, sizes.H
    q, k = (randn(*lead, T, sizes.D).clamp(-4, 4) for T in (sizes.Tq, sizes.Tk))
    q[..., 0], k[..., 0] = q[..., 0].abs() + 0.5, k[..., 0].abs() + 0.5
    return q, k, randn(*lead, sizes.Tk, sizes.Dv)


def calls(sizes):
    """Without causal, and with it where there are as many queries as keys."""
    return [qkv(sizes), (*qkv(sizes), True)] if sizes.Tq == sizes.Tk else [qkv(sizes), (*qkv(sizes), False)]


attention = standard.function("linear_attention", calls, inputs="q, k and v", terms=lambda sizes: sizes.Tk * sizes.D)
test_from_scratch = standard.from_scratch(attention, blocks=FORBIDDEN_ATTENTIONS, cases=(*SMALL, SIZES[8]))


@claims(
    "The output is one tensor of shape (B, H, Tq, Dv).",
    look_at="which dimensions of the sums are left, and the lengths of queries and keys",
    cases=SIZES,
)
def test_output_shape(attempt, sizes):
    for args in calls(sizes):
        assert_shape(attempt.linear_attention(*args), (sizes.B, sizes.H, sizes.Tq, sizes.Dv))


@claims(
    "The output is the mean of the values with the weights phi(q_i)·phi(k_j), phi(x) = elu(x) + 1.",
    look_at="the feature map of queries and keys, and what you divide by",
    needs="output_shape",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    for args in (qkv(sizes), (*qkv(sizes), False)):
        assert_close(attempt.linear_attention(*args), reference.linear_attention(*args), atol=1e-5)


@claims(
    "With causal, each query takes the mean over its own position and earlier ones.",
    look_at="both sums, the dimension that they run along, and whether the own position counts",
    needs="output_shape",
    cases=SQUARE,
)
def test_causal(attempt, reference, sizes):
    for what in ("out with causal=True: out", "out on a second call with causal=True: out"):
        args = *qkv(sizes), True

        assert_close(attempt.linear_attention(*args), reference.linear_attention(*args), atol=1e-5, what=what)


@claims(
    "With causal, a query's output does not depend on later keys or values.",
    look_at="what is summed over all keys",
    needs="output_shape",
    cases=SIZES[:1],
)
def test_no_future_leak(attempt, sizes):
    q, k, v = qkv(sizes)
    before = attempt.linear_attention(q, k, v, True)
    for first in range(1, sizes.Tk):
        changed_k, changed_v = k.clone(), v.clone()
        changed_k[..., first:, :] += 1
        changed_v[..., first:, :] += 10
        after = attempt.linear_attention(q, changed_k, changed_v, True)
        what = f"out[..., :{first}, :] when k and v change from {first} on: out"

        assert_close(after[..., :first, :].nan_to_num(), before[..., :first, :].nan_to_num(), atol=1e-5, what=what)


@claims(
    "The weights of a query sum to 1: if all values are equal, the output is that value.",
    look_at="what you divide by",
    needs="output_shape",
    cases=SMALL,
)
def test_weights_sum_to_one(attempt, sizes):
    for q, k, v, *more in calls(sizes):
        same = v[..., :1, :].expand_as(v).contiguous()  # (B, H, Tk, Dv), one value for every key
        out = attempt.linear_attention(q, k, same, *more)
        what = f"out when all values are equal{', causal' if more == [True] else ''}: out"

        assert_close(out, same[..., :1, :].expand_as(out), atol=1e-5, what=what)


@claims(
    "Samples, heads and queries do not mix: changing one does not change the others.",
    look_at="the dimensions that the sums run along",
    needs="output_shape",
    cases=SMALL,
)
def test_samples_heads_and_queries_are_independent(attempt, sizes):
    every = slice(None)
    for q, k, v, *more in calls(sizes):
        before = attempt.linear_attention(q, k, v, *more)
        for place, rest, parts in (
            ((0,), (slice(1, None),), (q, k, v)),  # the first sample
            ((every, 0), (every, slice(1, None)), (q, k, v)),  # the first head
            ((every, every, 0), (every, every, slice(1, None)), (q,)),  # the first query
        ):
            changed = [part.clone() for part in parts]
            for part in changed:
                part[place] += 0.5
            after = attempt.linear_attention(*changed, *(q, k, v)[len(parts) :], *more)

            what = "out of the others when one sample, head or query changes: out"
            assert_close(after[rest].nan_to_num(), before[rest].nan_to_num(), atol=1e-5, what=what)


@claims(
    "The cost is linear: twice the length makes at most 2.2 times the elements, and no tensor of T * T.",
    look_at="the order of the products, and what is made for each pair of positions",
    needs="output_shape",
    cases=(Sizes(B=1, H=2, Tq=1024, Tk=1024, D=3, Dv=2),),
)
def test_cost(attempt, sizes):
    args = qkv(sizes)
    half = tuple(part[..., : sizes.Tk // 2, :].contiguous() for part in args)
    for causal in (False, True):
        whole = attempt.linear_attention.run(*args, causal, measure=True).cost
        part = attempt.linear_attention.run(*half, causal, measure=True).cost
        square = sizes.Tk * sizes.Tk
        called = f"with causal={causal} and T={sizes.Tk:,}"

        told = f"{called}, a tensor of {whole.largest:,} elements is made; T * T is {square:,}"
        assert_holds(whole.largest < square, told)
        ratio = whole.made / part.made
        told = (
            f"{called}, {whole.made:,} elements are made, {ratio:.2f} times the {part.made:,} of T={sizes.Tk // 2}; "
            "the contract allows 2.2 times"
        )
        assert_holds(ratio <= 2.2, told)


test_gradients = standard.gradients(attention, needs=("values", "causal"), cases=SIZES[:6])
test_output_dtype = standard.output_dtype(attention, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(attention, needs=("values", "causal"), cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(attention, needs="output_shape", cases=(SIZES[0], SIZES[3]))
test_non_contiguous_inputs = standard.non_contiguous_inputs(attention, needs=("values", "causal"), cases=SMALL)
test_device = standard.device(attention, needs="output_shape", cases=SMALL[:1])


# ---------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Entries of -50 in q or in k give right results in float64.",
    tier="edge",
    look_at="what elu(x) + 1 gives far below 0",
    needs=("values", "causal"),
    cases=SMALL,
)
def test_far_below_zero(attempt, reference, sizes):
    for q, k, v, *more in calls(sizes):
        low_q, low_k = q.clone(), k.clone()
        low_q[..., :1, :] = -50
        low_k[..., 1:, :] = -50
        for args in ((low_q, k, v, *more), (q, low_k, v, *more), (0 * q - 50, 0 * k - 50, v, *more)):
            assert_close(attempt.linear_attention(*args), reference.linear_attention(*args), atol=1e-5)


test_half_precision = standard.half_precision(attention, needs=("values", "causal"), cases=SMALL)
test_float64_throughout = standard.float64_throughout(attention, needs=("values", "causal"), cases=SMALL)
test_own_memory = standard.own_memory(attention, needs="output_shape", cases=(SIZES[0], SIZES[4]))
