"""Hidden tests of online_softmax: each tests one property of the contract in prompt.md."""

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

SIZES = (
    Sizes(B=2, H=3, Tq=4, Tk=5, D=7, Dv=6),
    Sizes(B=3, H=2, Tq=6, Tk=4, D=5, Dv=8),
    Sizes(B=2, H=5, Tq=1, Tk=3, D=6, Dv=4),
    Sizes(B=4, H=3, Tq=5, Tk=1, D=2, Dv=7),
    Sizes(B=1, H=1, Tq=3, Tk=4, D=1, Dv=1),
    Sizes(B=3, H=3, Tq=3, Tk=3, D=3, Dv=3),
    Sizes(B=1, H=2, Tq=3, Tk=4, D=70, Dv=66),
    Sizes(B=1, H=1, Tq=131, Tk=150, D=3, Dv=2),
    Drawn(B=(1, 4), H=(1, 4), Tq=(1, 40), Tk=(1, 40), D=(1, 24), Dv=(1, 24)),
)
SMALL = SIZES[:2]


def qkv(sizes, *lead):
    """q (*lead, Tq, D), k (*lead, Tk, D), v (*lead, Tk, Dv); leading dimensions (B, H) unless given."""
    lead = lead or (sizes.B, sizes.H)
    return randn(*lead, sizes.Tq, sizes.D), randn(*lead, sizes.Tk, sizes.D), randn(*lead, sizes.Tk, sizes.Dv)


def some_kept(*shape):
    """Random flags; no row is all False."""
    return (torch.rand(*shape) < 0.5) | (torch.arange(shape[-1]) == torch.randint(shape[-1], (*shape[:-1], 1)))


def some_empty(sizes):
    """(B, 1, Tq, Tk): random flags; every other row is all False."""
    return some_kept(sizes.B, 1, sizes.Tq, sizes.Tk) & (torch.arange(sizes.Tq) % 2 == 1)[:, None]


def partials(sizes):
    """Results that two parts may have: out (B, H, Tq, Dv) and lse (B, H, Tq), twice."""
    lead = (sizes.B, sizes.H, sizes.Tq)
    return randn(*lead, sizes.Dv), 2 * randn(*lead), randn(*lead, sizes.Dv), 2 * randn(*lead)


def parts_of(reference, q, k, v, mask, *ends):
    """The reference's results over parts of the keys that end at these places and at the last key."""
    starts, ends = (0, *ends), (*ends, k.shape[-2])
    return [
        reference.partial_attention(q, k[..., a:b, :], v[..., a:b, :], None if mask is None else mask[..., a:b])
        for a, b in zip(starts, ends, strict=True)
    ]


axes = {"lse": ("head", "query")}
partial = standard.function(
    "partial_attention",
    lambda sizes: [qkv(sizes), (*qkv(sizes), some_kept(sizes.B, 1, sizes.Tq, sizes.Tk))],
    inputs="q, k, v and mask",
    terms=lambda sizes: sizes.Tk * sizes.D,
    axes=axes,
)
merge = standard.function("merge_partials", lambda sizes: [partials(sizes)], inputs="the four inputs", axes=axes)
both = (partial, merge)


def compare(actual, expected, *, atol=1e-5, what=""):
    """Both parts of a result; an lse may be -inf."""
    for name, got, right in zip(("out", "lse"), actual, expected, strict=True):
        rows, columns = ("query", "feature") if name == "out" else ("head", "query")
        assert_close(
            got,
            right,
            atol=atol,
            what=f"{name}{what}: {name}" if what else name,
            rows=rows,
            columns=columns,
            infinities=True,
        )


test_from_scratch = standard.from_scratch(*both, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[7]))


# --------------------------------------------------------------------------------------------------- partial_attention


@claims(
    "partial_attention gives (out, lse), of shapes (..., Tq, Dv) and (..., Tq).",
    look_at="which dimension the sums remove",
    cases=SIZES[:6],
)
def test_partial_shape(attempt, sizes):
    out, lse = attempt.partial_attention(*qkv(sizes))

    assert_shape(out, (sizes.B, sizes.H, sizes.Tq, sizes.Dv), what="out")
    assert_shape(lse, (sizes.B, sizes.H, sizes.Tq), what="lse")


@claims(
    "out is softmax(q kᵀ / sqrt(D)) v over the keys of the part.",
    look_at="the scale, the dimension of the softmax, and what out is divided by",
    needs="partial_shape",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    q, k, v = qkv(sizes)

    for _ in range(2):  # a second call must be right too
        out, _ = attempt.partial_attention(q, k, v)
        assert_close(out, reference.partial_attention(q, k, v)[0], atol=1e-5)
        q = q.flip(-2)


@claims(
    "lse is the natural log of the sum of exp of the scaled scores.",
    look_at="what is summed, what was subtracted before exp, and the base of the logarithm",
    needs="partial_shape",
    cases=SIZES,
)
def test_lse(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    _, lse = attempt.partial_attention(q, k, v)

    assert_close(lse, reference.partial_attention(q, k, v)[1], atol=1e-5, what="lse", rows="head", columns="query")


@claims(
    "With a mask of any shape that broadcasts to (..., Tq, Tk), masked keys count in neither out nor lse.",
    look_at="what True means, and where the mask acts",
    needs=("values", "lse"),
    cases=(*SMALL, SIZES[5], SIZES[8]),
)
def test_mask(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    for shape in (
        (1, sizes.Tk),
        (sizes.Tq, sizes.Tk),
        (sizes.B, 1, 1, sizes.Tk),
        (sizes.B, sizes.H, sizes.Tq, sizes.Tk),
    ):
        mask = some_kept(*shape)
        compare(
            attempt.partial_attention(q, k, v, mask),
            reference.partial_attention(q, k, v, mask),
            what=f" with a mask of {shape}",
        )


@claims(
    "A query with no key in the part gets out 0 and lse -inf.",
    look_at="what exp and the division give if every score is -inf",
    needs="mask",
    cases=(*SMALL, SIZES[3]),
)
def test_empty_rows(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    for mask in (some_empty(sizes), torch.zeros(1, sizes.Tk, dtype=torch.bool)):
        compare(
            attempt.partial_attention(q, k, v, mask),
            reference.partial_attention(q, k, v, mask),
            what=" with empty rows",
        )


# ------------------------------------------------------------------------------------------------------ merge_partials


@claims(
    "merge_partials gives (out, lse), of the shapes of its inputs.",
    look_at="how lse is made to fit out, and what is returned",
    cases=SIZES[:6],
)
def test_merge_shape(attempt, sizes):
    out, lse = attempt.merge_partials(*partials(sizes))

    assert_shape(out, (sizes.B, sizes.H, sizes.Tq, sizes.Dv), what="out")
    assert_shape(lse, (sizes.B, sizes.H, sizes.Tq), what="lse")


@claims(
    "Merging two parts gives out and lse of attention over the keys of both.",
    look_at="how much each part counts, and what the merged lse is",
    needs="merge_shape",
    cases=(*SMALL, *SIZES[4:]),
)
def test_merge(attempt, reference, sizes):
    given = partials(sizes)
    compare(attempt.merge_partials(*given), reference.merge_partials(*given))
    q, k, v = qkv(sizes)
    if sizes.Tk > 1:
        a, b = parts_of(reference, q, k, v, None, (sizes.Tk + 2) // 3)
        compare(attempt.merge_partials(*a, *b), reference.partial_attention(q, k, v), what=" of two parts of the keys")


@claims(
    "Any number of leading dimensions works, including none.",
    look_at="whether dimensions are counted from the end",
    needs=("values", "lse", "merge"),
    cases=SMALL,
)
def test_any_leading_dimensions(attempt, reference, sizes):
    for lead in ((), (sizes.B,), (2, 1, sizes.B, sizes.H)):
        shapes = [(*lead, sizes.Tq, size) for size in (sizes.D, sizes.Dv)]
        given = (
            randn(*shapes[0]),
            randn(*lead, sizes.Tk, sizes.D),
            randn(*lead, sizes.Tk, sizes.Dv),
        )
        what = f" with {len(lead)} leading dimensions"
        compare(attempt.partial_attention(*given), reference.partial_attention(*given), what=what)
        given = (randn(*shapes[1]), randn(*lead, sizes.Tq), randn(*shapes[1]), randn(*lead, sizes.Tq))
        compare(attempt.merge_partials(*given), reference.merge_partials(*given), what=f" merged{what}")


@claims(
    "Three parts merge in any order and in any grouping.",
    look_at="whether the merged lse can be merged again, and whether the two parts are treated alike",
    needs="merge",
    cases=(Sizes(B=2, H=3, Tq=4, Tk=6, D=7, Dv=5),),
)
def test_order_and_grouping(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    right = reference.partial_attention(q, k, v)
    a, b, c = parts_of(reference, q, k, v, None, 1, 3)

    def merged(one, other):
        return attempt.merge_partials(*one, *other)

    compare(merged(merged(a, b), c), right, what=" of (a + b) + c")
    compare(merged(a, merged(b, c)), right, what=" of a + (b + c)")
    compare(merged(merged(c, a), b), right, what=" of (c + a) + b")


@claims(
    "Merging with an empty part changes nothing, and two empty parts give 0 and -inf.",
    look_at="-inf minus -inf",
    needs="merge",
    cases=(*SMALL, SIZES[5]),
)
def test_merge_empty(attempt, reference, sizes):
    out, lse, other, _ = partials(sizes)
    none = torch.zeros_like(out), torch.full_like(lse, float("-inf"))
    some = (torch.arange(sizes.Tq) % 2 == 0).expand(lse.shape)
    partly = out.masked_fill(some[..., None], 0.0), lse.masked_fill(some, float("-inf"))

    compare(attempt.merge_partials(*none, *none), none, what=" of two empty parts")
    compare(attempt.merge_partials(out, lse, *none), (out, lse), what=" merged with an empty part")
    compare(attempt.merge_partials(*none, out, lse), (out, lse), what=" merged after an empty part")
    right = reference.merge_partials(*partly, other, lse + 1)
    compare(attempt.merge_partials(*partly, other, lse + 1), right, what=" merged where one is empty for some queries")
    right = reference.merge_partials(*partly, *partly)
    compare(attempt.merge_partials(*partly, *partly), right, what=" merged where both are empty for some queries")


@claims(
    "Scores of about 1e4 and -1e4 give finite, right results in both functions.",
    look_at="exp of a large number, and what is subtracted before it",
    needs=("mask", "merge"),
    cases=(Sizes(B=2, H=3, Tq=4, Tk=6, D=16, Dv=5),),
)
def test_large_scores(attempt, reference, sizes):
    # Integers, and D = 16, whose root is 4, so that float32 holds every score exactly.
    q, k, v = qkv(sizes)
    q, k = (100 * q).round(), (100 * k).round()
    low = torch.cat([k[..., :3, :], k[..., 3:, :] - 900 * q[..., :1, :].sign()], dim=-2)  # keys far below the others

    for dtype, atol in ((torch.float64, 1e-5), (torch.float32, 1e-2)):
        for keys in (k, low):
            right = reference.partial_attention(q, keys, v)
            given = [part.to(dtype) for part in (q, keys, v)]
            kind = str(dtype).removeprefix("torch.")
            compare(attempt.partial_attention(*given), right, atol=atol, what=f" of large scores in {kind}")
            a, b = ([part.to(dtype) for part in pair] for pair in parts_of(reference, q, keys, v, None, 3))
            compare(attempt.merge_partials(*a, *b), right, atol=atol, what=f" merged, of large scores in {kind}")


# ----------------------------------------------------------------------------------------- true of every kata, core


test_gradients = standard.gradients(
    *both, claim="Gradients to every input are those of the definition.", needs=("mask", "merge"), cases=SMALL[:1]
)
test_output_dtype = standard.output_dtype(*both, needs=("partial_shape", "merge_shape"), cases=SMALL[:1])
test_float32 = standard.float32(*both, needs=("mask", "merge"), cases=SMALL[:1])
test_inputs_unmodified = standard.inputs_unmodified(
    *both,
    claim="The calls do not change their inputs.",
    needs=("partial_shape", "merge_shape"),
    cases=SMALL[:1],
)
test_non_contiguous_inputs = standard.non_contiguous_inputs(
    *both,
    claim="The results do not depend on the memory layout of the inputs.",
    needs=("mask", "merge"),
    cases=SMALL[:1],
)
test_device = standard.device(*both, needs=("partial_shape", "merge_shape"), cases=SMALL[:1])


# --------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Gradients are finite where a part is empty.",
    tier="edge",
    needs=("gradients", "empty_rows", "merge_empty"),
    cases=SMALL[:1],
    look_at="the gradient of an operation on -inf or 0, even if another branch of a where is taken",
)
def test_gradients_of_empty_parts(attempt, sizes):
    out, lse, *_ = partials(sizes)
    empty = torch.zeros_like(out), torch.full_like(lse, float("-inf"))
    for name, given in (
        ("partial_attention", (*qkv(sizes), some_empty(sizes))),
        ("merge_partials", (out, lse, *empty)),
        ("merge_partials", (*empty, *empty)),
    ):
        cotangent = {"out": randn(*out.shape), "lse": randn(*lse.shape)}
        gradients = getattr(attempt, name).run(*given, cotangent=cotangent).input_gradients
        for place, gradient in enumerate(gradients, start=1):
            finite = gradient is None or bool(gradient.isfinite().all())
            assert_holds(finite, f"the gradient of argument {place} of {name} is not finite where a part is empty")


test_half_precision = standard.half_precision(*both, needs=("mask", "merge"), cases=SMALL[:1])
test_float64_throughout = standard.float64_throughout(*both, needs=("mask", "merge"), cases=SMALL[:1])
test_own_memory = standard.own_memory(*both, needs=("partial_shape", "merge_shape"), cases=(SIZES[0], SIZES[4]))
