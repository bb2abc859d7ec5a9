"""Hidden tests of flash_attention: each tests one property of the contract in prompt.md."""

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


def longer(*, Tq, more, **sizes):
    return Sizes(Tq=Tq, Tk=Tq + more, **sizes)


# With Tk >= Tq, so that each may be causal. bq and bk are the block sizes.
SIZES = (
    Sizes(B=2, H=3, Tq=4, Tk=6, D=7, Dv=5, bq=2, bk=3),
    Sizes(B=3, H=2, Tq=5, Tk=7, D=4, Dv=6, bq=2, bk=3),
    Sizes(B=2, H=1, Tq=5, Tk=5, D=3, Dv=4, bq=3, bk=2),
    Sizes(B=1, H=2, Tq=3, Tk=8, D=5, Dv=2, bq=1, bk=1),
    Sizes(B=2, H=3, Tq=3, Tk=4, D=5, Dv=6, bq=7, bk=9),
    Sizes(B=2, H=2, Tq=1, Tk=1, D=1, Dv=1, bq=1, bk=1),
    Sizes(B=1, H=1, Tq=4, Tk=9, D=2, Dv=3, bq=4, bk=5),
    Sizes(B=1, H=2, Tq=3, Tk=5, D=70, Dv=66, bq=2, bk=2),
    Sizes(B=1, H=1, Tq=131, Tk=150, D=3, Dv=2, bq=48, bk=64),
    Drawn(longer, B=(1, 3), H=(1, 3), Tq=(1, 20), more=(0, 12), D=(1, 24), Dv=(1, 24), bq=(2, 12), bk=(2, 12)),
)
SMALL = SIZES[:2]


def qkv(sizes):
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv). The scores grow along the keys, so that the maximum moves."""
    q, k = randn(sizes.B, sizes.H, sizes.Tq, sizes.D), randn(sizes.B, sizes.H, sizes.Tk, sizes.D)
    grows = torch.linspace(0.5, 2, sizes.Tk, dtype=torch.float64)[:, None]
    return q, k * grows, randn(sizes.B, sizes.H, sizes.Tk, sizes.Dv)


def calls(sizes):
    return [(*qkv(sizes), sizes.bq, sizes.bk, causal) for causal in (False, True)]


attention = standard.function(
    "flash_attention",
    calls,
    inputs="q, k and v",
    terms=lambda sizes: sizes.Tk * sizes.D,
    axes={"lse": ("head", "query")},
)


test_from_scratch = standard.from_scratch(attention, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[8]))


@claims(
    "The result is (out, lse), of shapes (B, H, Tq, Dv) and (B, H, Tq).",
    look_at="how the blocks of queries are put together",
    cases=SIZES[:7],
)
def test_output_shape(attempt, sizes):
    out, lse = attempt.flash_attention(*qkv(sizes), sizes.bq, sizes.bk)

    assert_shape(out, (sizes.B, sizes.H, sizes.Tq, sizes.Dv), what="out")
    assert_shape(lse, (sizes.B, sizes.H, sizes.Tq), what="lse")


@claims(
    "With one tile, out is softmax(q kᵀ / sqrt(D)) v.",
    look_at="the scale, the dimension of the softmax, and what out is divided by",
    needs="output_shape",
    cases=SIZES[:8],
)
def test_one_tile(attempt, reference, sizes):
    given = (*qkv(sizes), sizes.Tq, sizes.Tk)

    assert_close(attempt.flash_attention(*given)[0], reference.flash_attention(*given)[0], atol=1e-5)


@claims(
    "With any block sizes, out is softmax(q kᵀ / sqrt(D)) v.",
    look_at="what is rescaled when the maximum grows, when you divide, and the last, shorter block",
    needs="output_shape",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    for _ in range(2):  # a second call must be right too; then the maximum moves the other way
        given = q, k, v, sizes.bq, sizes.bk
        assert_close(attempt.flash_attention(*given)[0], reference.flash_attention(*given)[0], atol=1e-5)
        q, k = q.flip(-2), k.flip(-2)


@claims(
    "lse is the natural log of the sum of exp of the scaled scores, over all tiles.",
    look_at="which of the running values it is made of, and after which tile",
    needs="output_shape",
    cases=SIZES,
)
def test_lse(attempt, reference, sizes):
    given = (*qkv(sizes), sizes.bq, sizes.bk)
    ours, theirs = attempt.flash_attention(*given)[1], reference.flash_attention(*given)[1]

    assert_close(ours, theirs, atol=1e-5, what="lse", rows="head", columns="query")


@claims(
    "With causal, query i attends to the keys up to i + Tk - Tq.",
    look_at="which positions a tile covers among all queries and all keys",
    needs=("values", "lse"),
    cases=SIZES,
)
def test_causal(attempt, reference, sizes):
    given = (*qkv(sizes), sizes.bq, sizes.bk, True)
    result, right = attempt.flash_attention.run(*given), reference.flash_attention.run(*given)

    attention.close(result, right, atol=1e-5, what="out with causal: out")


@claims(
    "The block sizes do not change the results.",
    look_at="whether a block size is used where a length is meant",
    needs="output_shape",
    cases=SMALL,
)
def test_blocks_do_not_matter(attempt, sizes):
    q, k, v = qkv(sizes)
    first = attempt.flash_attention.run(q, k, v, sizes.Tq, sizes.Tk)
    for bq, bk in ((1, 1), (1, sizes.Tk), (sizes.Tq, 1), (sizes.Tq + 3, sizes.Tk + 5), (sizes.Tq - 1, sizes.Tk - 1)):
        other = attempt.flash_attention.run(q, k, v, bq, bk)
        attention.close(other, first, atol=1e-5, what=f"out with blocks of {bq} and {bk}: out")


@claims(
    "No tensor is larger than a tile or an input.",
    look_at="where a tensor with both lengths is made: scores, a mask, or positions",
    needs="output_shape",
    cases=(
        Sizes(B=2, H=1, Tq=30, Tk=40, D=9, Dv=3, bq=12, bk=16),
        Sizes(B=1, H=3, Tq=18, Tk=18, D=2, Dv=5, bq=6, bk=6),
    ),
)
def test_memory(attempt, sizes):
    Tq, Tk = (-(-length // block) * block for length, block in ((sizes.Tq, sizes.bq), (sizes.Tk, sizes.bk)))
    most = max(sizes.bq * sizes.bk, Tq * sizes.D, Tk * sizes.D, Tq * sizes.Dv, Tk * sizes.Dv)
    allowed = sizes.B * sizes.H * most
    for given in calls(sizes):
        largest = attempt.flash_attention.run(*given, measure=True).cost.largest
        told = (
            f"a tensor has {largest:,} elements{' with causal' if given[-1] else ''}; the contract allows {allowed:,}"
        )
        assert_holds(largest <= allowed, told)


@claims(
    "Scores of about 1e4 and -1e4 give finite, right results.",
    look_at="exp of a large number, and what is subtracted before it",
    needs="causal",
    cases=(Sizes(B=2, H=3, Tq=4, Tk=6, D=16, Dv=5, bq=2, bk=2),),
)
def test_large_scores(attempt, reference, sizes):
    # Integers, and D = 16, whose root is 4, so that float32 holds every score exactly.
    q, k, v = qkv(sizes)
    q, k = (100 * q).round(), (100 * k).round()
    for dtype, atol in ((torch.float64, 1e-5), (torch.float32, 1e-2)):
        for causal in (False, True):
            right = reference.flash_attention.run(q, k, v, sizes.bq, sizes.bk, causal)
            given = [part.to(dtype) for part in (q, k, v)]
            what = f"out of large scores in {str(dtype).removeprefix('torch.')}: out"
            attention.close(
                attempt.flash_attention.run(*given, sizes.bq, sizes.bk, causal), right, atol=atol, what=what
            )


# ----------------------------------------------------------------------------------------- true of every kata, core


test_output_dtype = standard.output_dtype(attention, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(attention, needs="causal", cases=SMALL[:1])
test_inputs_unmodified = standard.inputs_unmodified(attention, needs="output_shape", cases=SMALL[:1])
test_non_contiguous_inputs = standard.non_contiguous_inputs(attention, needs="causal", cases=SMALL[:1])
test_device = standard.device(attention, needs="output_shape", cases=SMALL[:1])


# --------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Tiles that lie wholly in the future are not computed.",
    tier="edge",
    needs="causal",
    cases=(Sizes(B=1, H=2, Tq=40, Tk=40, D=8, Dv=8, bq=8, bk=8),),
    look_at="how far the loop over the keys goes with causal",
)
def test_future_skipped(attempt, sizes):
    whole, causal = (attempt.flash_attention.run(*given, measure=True).cost.multiplied for given in calls(sizes))

    # 15 of 25 tiles are needed, 60%; one too many in each row would be 76%. The rest of the work is small beside the products.
    told = (
        f"with causal, {causal:,} multiplications are made, {causal / whole:.0%} of the {whole:,} without; "
        "10 of the 25 tiles lie wholly in the future"
    )
    assert_holds(causal <= 0.8 * whole, told)


@claims(
    "Gradients to q, k and v are those of the definition.",
    tier="edge",
    needs="causal",
    cases=SMALL[:1],
    look_at="whether any step is detached, or done in place on what autograd still needs",
)
def test_gradients(attempt, reference, sizes):
    for given in calls(sizes):
        cotangent = {"out": randn(sizes.B, sizes.H, sizes.Tq, sizes.Dv)}
        ours, theirs = (
            each.flash_attention.run(*given, cotangent=cotangent).input_gradients for each in (attempt, reference)
        )
        for name, got, right in zip("qkv", ours, theirs, strict=True):
            assert_holds(got is not None, f"no gradient reaches {name}")
            assert_close(got, right, atol=1e-5, what=f"the gradient of {name}: grad", rows="row", columns="column")


test_half_precision = standard.half_precision(attention, needs="causal", cases=SMALL[:1])
test_float64_throughout = standard.float64_throughout(attention, needs="causal", cases=SMALL[:1])
test_own_memory = standard.own_memory(attention, needs="output_shape", cases=(SIZES[0], SIZES[5]))
