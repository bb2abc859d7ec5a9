"""Hidden tests of sdpa: what CONTRACT in kata.toml states, one property each."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Sizes,
    assert_close,
    assert_shape,
    check_computes_in_dtype,
    check_from_scratch,
    check_gradients,
    check_keeps_dtype,
    check_leaves_inputs,
    check_own_memory,
    check_stays_on_device,
    check_takes_strided,
    claims,
    randn,
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
)
SMALL = SIZES[:2]


def qkv(sizes, *lead):
    """q (*lead, Tq, D), k (*lead, Tk, D), v (*lead, Tk, Dv); leading dimensions (B, H) unless given."""
    lead = lead or (sizes.B, sizes.H)
    return (
        randn(*lead, sizes.Tq, sizes.D),
        randn(*lead, sizes.Tk, sizes.D),
        randn(*lead, sizes.Tk, sizes.Dv),
    )


@claims("The output is one tensor of shape (..., Tq, Dv).", look_at="which dimension the weights sum over", cases=SIZES)
def test_output_shape(attempt, sizes):
    out = attempt.scaled_dot_product_attention(*qkv(sizes))

    assert_shape(out, (sizes.B, sizes.H, sizes.Tq, sizes.Dv))


@claims(
    "The output is softmax(q kᵀ / sqrt(D)) v.",
    look_at="the scale, and the dimension of the softmax",
    needs="output_shape",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    q, k, v = qkv(sizes)

    for _ in range(2):  # right on the first call only is not right
        out = attempt.scaled_dot_product_attention(q, k, v)
        assert_close(out, reference.scaled_dot_product_attention(q, k, v), atol=1e-5)
        q = q.flip(-2)


@claims(
    "Scores far from 0, about 30 either way, give the formula's values too.",
    look_at="whether anything bounds the scores, or is added to the sum of the weights",
    needs="values",
    cases=SMALL,
)
def test_strong_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    low = q.clone(), k.clone()  # the first feature takes 30 off every score
    low[0][..., 0], low[1][..., 0] = -6 * sizes.D**0.5, 5.0

    for strong in ((4 * q, 4 * k), low):
        out = attempt.scaled_dot_product_attention(*strong, v)
        # 1e-4, because scores of 30 cost float32 arithmetic on the way two digits
        assert_close(out, reference.scaled_dot_product_attention(*strong, v), atol=1e-4)


@claims(
    "Each query's weights over the keys sum to 1: where all values are equal, the output is that value.",
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
    "Samples and heads do not mix: changing one leaves the others as they were.",
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
    "Any number of leading dimensions works, none included.",
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


@claims(
    "Gradients to q, k and v are those of the formula.",
    look_at="whether anything on the way is detached, rounded or rewritten in place",
    needs="values",
    cases=SIZES[:4],
)
def test_gradients(attempt, reference, sizes):
    check_gradients(attempt.scaled_dot_product_attention, reference.scaled_dot_product_attention, *qkv(sizes))


@claims("The output's dtype is that of the inputs, in float32 and float64.", needs="output_shape", cases=SMALL[:1],
        look_at="conversions on the way, and tensors made without a dtype")  # fmt: skip
def test_output_dtype(attempt, sizes):
    for dtype in (torch.float32, torch.float64):
        check_keeps_dtype(attempt.scaled_dot_product_attention, *qkv(sizes), dtype=dtype)


@claims("float32 inputs give right values within float32's rounding.", needs="values", cases=SMALL,
        look_at="arithmetic in a narrower dtype than the inputs'")  # fmt: skip
def test_float32(attempt, reference, sizes):
    check_computes_in_dtype(
        attempt.scaled_dot_product_attention,
        reference.scaled_dot_product_attention,
        *qkv(sizes),
        dtype=torch.float32,
        terms=sizes.Tk * sizes.D,
    )


@claims("q, k and v are left as they were.", needs="output_shape", cases=SMALL[:1],
        look_at="in-place operations on the arguments")  # fmt: skip
def test_inputs_unmodified(attempt, sizes):
    check_leaves_inputs(attempt.scaled_dot_product_attention, *qkv(sizes))


@claims("Non-contiguous inputs give the same output.", needs="values", cases=SMALL,
        look_at="view on a tensor whose layout you do not know")  # fmt: skip
def test_non_contiguous_inputs(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    shared = k[:, :1].expand_as(k), v[:, :1].expand_as(v)  # one head's keys and values for all, in the memory of one

    check_takes_strided(attempt.scaled_dot_product_attention, reference.scaled_dot_product_attention, q, k, v)
    out = attempt.scaled_dot_product_attention(q, *shared)

    right = reference.scaled_dot_product_attention(q, *shared)
    assert_close(out, right, atol=1e-5, what="out with expanded k and v: out")


@claims("Everything lies on the device of the inputs.", needs="output_shape", cases=SMALL[:1],
        look_at="tensors made without device=")  # fmt: skip
def test_device(attempt, sizes):
    check_stays_on_device(attempt.scaled_dot_product_attention, *qkv(sizes))


@claims("No ready-made attention is called.", blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[7]),
        look_at="what the contract forbids")  # fmt: skip
def test_from_scratch(attempt, sizes):
    for dtype in (torch.float64, torch.float32):
        check_from_scratch(attempt.scaled_dot_product_attention, *(part.to(dtype) for part in qkv(sizes)))


@claims("Scores of about 1e4 in float32 give finite, right results.", tier="edge", needs="values", cases=SMALL,
        look_at="exp of a large number")  # fmt: skip
def test_large_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    q, k = (q * 100).round(), (k * 100).round()  # integers, so that float32 scores are nearly exact

    out = attempt.scaled_dot_product_attention(q.float(), k.float(), v.float())

    assert_close(out, reference.scaled_dot_product_attention(q, k, v), atol=1e-2, what="out")


@claims("float16 and bfloat16 inputs work.", tier="edge", needs="values", cases=SMALL,
        look_at="constants that the dtype cannot hold")  # fmt: skip
def test_half_precision(attempt, reference, sizes):
    for dtype in (torch.float16, torch.bfloat16):
        check_computes_in_dtype(
            attempt.scaled_dot_product_attention,
            reference.scaled_dot_product_attention,
            *qkv(sizes),
            dtype=dtype,
            terms=sizes.Tk,
        )


@claims("float64 is kept throughout: exact to 1e-9.", tier="edge", needs="values", cases=SMALL,
        look_at="conversions to float32 on the way")  # fmt: skip
def test_float64_throughout(attempt, reference, sizes):
    q, k, v = qkv(sizes)

    out = attempt.scaled_dot_product_attention(q, k, v)

    assert_close(out, reference.scaled_dot_product_attention(q, k, v), atol=1e-9)


@claims("The output shares no memory with an input.", tier="edge", needs="output_shape", cases=(SIZES[0], SIZES[3]),
        look_at="an input, or a view of one, that is returned")  # fmt: skip
def test_own_memory(attempt, sizes):
    check_own_memory(attempt.scaled_dot_product_attention, *qkv(sizes))
