"""Hidden tests of sdpa: each tests one property of the contract in prompt.md."""

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Drawn,
    Sizes,
    assert_close,
    assert_shape,
    claims,
    randn,
    standard,
)

SIZES = (
    Sizes(B=2, H=3, Tq=4, Tk=5, D=7, Dv=6),
    Sizes(B=3, H=2, Tq=6, Tk=4, D=5, Dv=8),
    Sizes(B=2, H=5, Tq=1, Tk=3, D=6, Dv=4),
    Sizes(B=4, H=3, Tq=5, Tk=1, D=2, Dv=7),
    Sizes(B=3, H=3, Tq=3, Tk=3, D=3, Dv=3),
    Sizes(B=1, H=2, Tq=5, Tk=7, D=1, Dv=3),
    Sizes(B=2, H=1, Tq=131, Tk=3, D=6, Dv=5),
    Sizes(B=1, H=2, Tq=5, Tk=150, D=9, Dv=3),
    Sizes(B=2, H=3, Tq=4, Tk=5, D=3, Dv=1),
    Sizes(B=1, H=2, Tq=3, Tk=4, D=70, Dv=66),
)
EVERY = (*SIZES, Drawn(B=(1, 4), H=(1, 4), Tq=(1, 30), Tk=(1, 30), D=(1, 24), Dv=(1, 24)))
SMALL = SIZES[:2]


def qkv(sizes, *lead):
    """q (*lead, Tq, D), k (*lead, Tk, D), v (*lead, Tk, Dv); leading dimensions (B, H) unless given."""
    lead = lead or (sizes.B, sizes.H)
    return (
        randn(*lead, sizes.Tq, sizes.D),
        randn(*lead, sizes.Tk, sizes.D),
        randn(*lead, sizes.Tk, sizes.Dv),
    )


attention = standard.function(
    "scaled_dot_product_attention",
    lambda sizes: [qkv(sizes)],
    inputs="q, k and v",
    terms=lambda sizes: sizes.Tk * sizes.D,
)
test_from_scratch = standard.from_scratch(attention, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[7]))


@claims("The output is one tensor of shape (..., Tq, Dv).", look_at="which dimension the weights sum over", cases=EVERY)
def test_output_shape(attempt, sizes):
    out = attempt.scaled_dot_product_attention(*qkv(sizes))

    assert_shape(out, (sizes.B, sizes.H, sizes.Tq, sizes.Dv))


@claims(
    "The output is softmax(q kᵀ / sqrt(D)) v.",
    look_at="the scale, and the dimension of the softmax",
    needs="output_shape",
    cases=EVERY,
)
def test_values(attempt, reference, sizes):
    q, k, v = qkv(sizes)

    for _ in range(2):  # a second call must be right too
        out = attempt.scaled_dot_product_attention(q, k, v)
        assert_close(out, reference.scaled_dot_product_attention(q, k, v), atol=1e-5)
        q = q.flip(-2)
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "Scores far from 0, up to about 30 and -30, give the formula's values too.",
    look_at="whether anything limits the scores, or is added to the sum of the weights",
    needs="values",
    cases=SMALL,
)
def test_strong_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    low = q.clone(), k.clone()  # the first feature takes 30 off every score
    low[0][..., 0], low[1][..., 0] = -6 * sizes.D**0.5, 5.0

    for strong in ((4 * q, 4 * k), low):
        out = attempt.scaled_dot_product_attention(*strong, v)
        # 1e-4, because with scores of 30 an attempt that computes in float32 loses two digits
        assert_close(out, reference.scaled_dot_product_attention(*strong, v), atol=1e-4)


@claims(
    "Each query's weights over the keys sum to 1: if all values are equal, the output is that value.",
    look_at="which dimension of the scores the softmax normalises",
    needs="output_shape",
    cases=SMALL,
)
def test_weights_sum_to_one(attempt, sizes):
    q, k, v = qkv(sizes)
    same = v[..., :1, :].expand_as(v).contiguous()  # (B, H, Tk, Dv), one value for every key

    out = attempt.scaled_dot_product_attention(q, k, same)

    assert_close(out, same[..., :1, :].expand_as(out), atol=1e-5, what="out when all values are equal: out")


@claims(
    "A query's output does not depend on the other queries.",
    look_at="whether the softmax runs over the keys, the last dimension of the scores",
    needs="output_shape",
    cases=SMALL,
)
def test_queries_are_independent(attempt, sizes):
    q, k, v = qkv(sizes)
    changed = q.clone()
    changed[..., 1:, :] = randn(*changed[..., 1:, :].shape)

    before = attempt.scaled_dot_product_attention(q, k, v)
    after = attempt.scaled_dot_product_attention(changed, k, v)

    assert_close(after[..., :1, :], before[..., :1, :], atol=1e-5, what="out[..., :1, :] when the later queries change")


@claims(
    "Samples and heads do not mix: changing one does not change the others.",
    look_at="whether the softmax or a reshape reaches across a leading dimension",
    needs="output_shape",
    cases=SMALL,
)
def test_leading_dimensions_are_independent(attempt, sizes):
    q, k, v = qkv(sizes)
    before = attempt.scaled_dot_product_attention(q, k, v)
    for place in ((0,), (slice(None), 0)):  # the first sample, the first head
        changed = [part.clone() for part in (q, k, v)]
        for part in changed:
            part[place] = randn(*part[place].shape)
        after = attempt.scaled_dot_product_attention(*changed)
        rest = (slice(1, None),) if len(place) == 1 else (slice(None), slice(1, None))

        what = "out of the others when one sample or head changes: out"
        assert_close(after[rest], before[rest], atol=1e-5, what=what)


@claims(
    "Any number of leading dimensions works, including none.",
    look_at="whether dimensions are counted from the end",
    needs="values",
    cases=SMALL,
)
def test_any_leading_dimensions(attempt, reference, sizes):
    for lead in ((), (sizes.B,), (sizes.B, sizes.H, 2), (2, 1, sizes.B, sizes.H)):
        q = randn(*lead, sizes.Tq, sizes.D)
        k = randn(*lead, sizes.Tk, sizes.D)
        v = randn(*lead, sizes.Tk, sizes.Dv)
        out = attempt.scaled_dot_product_attention(q, k, v)

        assert_close(
            out,
            reference.scaled_dot_product_attention(q, k, v),
            atol=1e-5,
            what=f"out with {len(lead)} leading dimensions: out",
        )


test_gradients = standard.gradients(attention, needs="values", cases=SIZES[:4])
test_output_dtype = standard.output_dtype(attention, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(attention, needs="values", cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(attention, needs="output_shape", cases=SMALL[:1])
test_non_contiguous_inputs = standard.non_contiguous_inputs(attention, needs="values", cases=SMALL)
test_device = standard.device(attention, needs="output_shape", cases=SMALL[:1])


@claims(
    "Scores of about 1e4 in float32 give finite, right results.",
    tier="edge",
    needs="values",
    cases=SMALL,
    look_at="exp of a large number",
)
def test_large_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    q, k = (q * 100).round(), (k * 100).round()  # integers, so that float32 scores are nearly exact

    out = attempt.scaled_dot_product_attention(q.float(), k.float(), v.float())

    assert_close(out, reference.scaled_dot_product_attention(q, k, v), atol=1e-2, what="out")


test_half_precision = standard.half_precision(attention, needs="values", cases=SMALL, terms=lambda sizes: sizes.Tk)
test_float64_throughout = standard.float64_throughout(attention, needs="values", cases=SMALL)
test_own_memory = standard.own_memory(attention, needs="output_shape", cases=(SIZES[0], SIZES[3]))
