"""Hidden tests of combined_mask: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Drawn,
    Sizes,
    assert_close,
    assert_equal,
    assert_holds,
    assert_shape,
    check_gradients,
    claims,
    randn,
    standard,
    strided,
)

JOINED = (
    Sizes(B=2, Tq=3, Tk=4),
    Sizes(B=3, Tq=5, Tk=2),
    Sizes(B=2, Tq=1, Tk=3),
    Sizes(B=4, Tq=3, Tk=1),
    Sizes(B=1, Tq=3, Tk=5),
    Sizes(B=3, Tq=3, Tk=5),
    Sizes(B=4, Tq=3, Tk=4),
    Sizes(B=3, Tq=3, Tk=3),
    Sizes(B=2, Tq=131, Tk=150),
    Drawn(B=(1, 9), Tq=(1, 40), Tk=(1, 40)),
)
SIZES = (
    Sizes(B=2, H=3, Tq=4, Tk=5, D=7, Dv=6),
    Sizes(B=3, H=2, Tq=6, Tk=4, D=5, Dv=8),
    Sizes(B=2, H=1, Tq=1, Tk=3, D=6, Dv=2),
    Sizes(B=4, H=2, Tq=3, Tk=1, D=2, Dv=5),
    Sizes(B=3, H=3, Tq=3, Tk=3, D=3, Dv=3),
    Sizes(B=1, H=2, Tq=5, Tk=150, D=1, Dv=3),
    Sizes(B=2, H=3, Tq=131, Tk=8, D=9, Dv=5),
    Sizes(B=2, H=3, Tq=4, Tk=5, D=3, Dv=1),
    Sizes(B=1, H=2, Tq=3, Tk=4, D=70, Dv=66),
)
EVERY = (*SIZES, Drawn(B=(1, 4), H=(1, 4), Tq=(1, 30), Tk=(1, 30), D=(1, 24), Dv=(1, 24)))
SMALL = SIZES[:2]
SOME_MASKED = (
    *(sizes for sizes in SIZES if sizes.Tk > 1),
    Drawn(B=(1, 4), H=(1, 4), Tq=(1, 30), Tk=(2, 30), D=(1, 24), Dv=(1, 24)),
)
MASKS = ("(Tq, Tk)", "(H, Tq, Tk)", "(B, 1, 1, Tk)", "(B, 1, Tq, Tk)", "(B, H, Tq, Tk)", "(1, 1, Tq, Tk)")


def qkv(sizes, dtype=torch.float64):
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv)."""
    return (
        randn(sizes.B, sizes.H, sizes.Tq, sizes.D, dtype=dtype),
        randn(sizes.B, sizes.H, sizes.Tk, sizes.D, dtype=dtype),
        randn(sizes.B, sizes.H, sizes.Tk, sizes.Dv, dtype=dtype),
    )


def mask_of(shape, sizes):
    """A partial mask of this shape, in words: every row keeps a key, and where Tk > 1 masks one."""
    named = {**sizes.as_dict(), "1": 1}
    mask = torch.rand([named[part] for part in shape.strip("()").split(", ")]) < 0.5
    rows = mask.view(-1, sizes.Tk)
    row = torch.arange(len(rows))
    rows[row, (row + 1) % sizes.Tk] = False
    rows[row, row % sizes.Tk] = True
    return mask


def partial(sizes):
    """(B, 1, Tq, Tk), no row empty."""
    return mask_of("(B, 1, Tq, Tk)", sizes)


def all_true(sizes):
    return torch.ones(sizes.Tq, sizes.Tk, dtype=torch.bool)


def with_empty_rows(sizes):
    """Masks with empty rows, and the rows (B, H, Tq, 1) that are: single queries, a whole sample, all there is."""
    queries, sample = partial(sizes), partial(sizes)
    queries[torch.arange(sizes.B), 0, torch.arange(sizes.B) % sizes.Tq] = False
    sample[0] = False
    masks = {
        "some queries": queries,
        "a whole sample": sample,
        "the last query of every sample": all_true(sizes) & (torch.arange(sizes.Tq) < sizes.Tq - 1)[:, None],
        "every query": torch.zeros(sizes.B, 1, 1, sizes.Tk, dtype=torch.bool),
    }
    shape = (sizes.B, sizes.H, sizes.Tq, sizes.Tk)
    return {name: (mask, ~mask.expand(shape).any(-1, keepdim=True)) for name, mask in masks.items()}


# ---------------------------------------------------------------------------------------------------- combine_masks


def flags(sizes):
    """keep (B, Tk) and causal (Tq, Tk), any booleans: rows differ where the sizes allow it."""
    keep = torch.rand(sizes.B, sizes.Tk) < 0.6
    keep[torch.arange(sizes.B), torch.arange(sizes.B) % sizes.Tk] = False
    causal = torch.arange(sizes.Tk) <= torch.arange(sizes.Tq)[:, None] + max(0, sizes.Tk - sizes.Tq)
    return keep, causal


masks = standard.function("combine_masks", lambda sizes: [flags(sizes)], inputs="keep and causal")
attention = standard.function(
    "masked_attention",
    lambda sizes: [(*qkv(sizes), partial(sizes)), (*qkv(sizes), all_true(sizes))],
    inputs="q, k, v and mask",
    terms=lambda sizes: sizes.Tk * sizes.D,
)


def some_empty(sizes):
    """Calls of the attention with a mask that hides all keys from some queries, and with one that hides none."""
    mask, _ = with_empty_rows(sizes)["some queries"]
    return [(*qkv(sizes), mask), (*qkv(sizes), all_true(sizes))]


test_from_scratch = standard.from_scratch(
    attention, blocks=FORBIDDEN_ATTENTIONS, cases=(Sizes(B=2, H=3, Tq=131, Tk=150, D=5, Dv=7),), calls=some_empty
)


@claims(
    "The combined mask is bool, of shape (B, 1, Tq, Tk).",
    cases=JOINED,
    look_at="which dimensions are missing in each of the two masks",
)
def test_mask_shape(attempt, sizes):
    mask = attempt.combine_masks(*flags(sizes))

    assert_shape(mask, (sizes.B, 1, sizes.Tq, sizes.Tk), what="the mask")
    assert_holds(mask.dtype == torch.bool, f"the mask is {mask.dtype}, expected torch.bool")


@claims(
    "The combined mask is True where both masks allow, and False elsewhere.",
    look_at="how the two masks are combined, and to which dimension each of their flags belongs",
    needs="mask_shape",
    cases=JOINED,
)
def test_mask_where_both_allow(attempt, reference, sizes):
    keep, causal = flags(sizes)
    any_flags = torch.rand(sizes.Tq, sizes.Tk) < 0.5  # no triangle

    for given in ((keep, causal), (keep.roll(1, 0), causal), (~keep, any_flags)):
        assert_equal(attempt.combine_masks(*given), reference.combine_masks(*given), what="mask")


test_flags_unmodified = standard.inputs_unmodified(masks, needs="mask_shape", cases=(JOINED[0], JOINED[7]))


@claims(
    "Non-contiguous keep and causal give the same mask.",
    needs="mask_where_both_allow",
    cases=JOINED[:2],
    look_at="view on a tensor whose layout you do not know",
)
def test_non_contiguous_flags(attempt, reference, sizes):
    keep, causal = flags(sizes)
    expected = reference.combine_masks(keep, causal)
    alike = keep[:1].expand_as(keep)  # the flags of one sample for all, in the memory of one

    assert_equal(attempt.combine_masks(strided(keep), strided(causal)), expected, what="mask")
    assert_equal(attempt.combine_masks(alike, causal), reference.combine_masks(alike, causal), what="mask")


test_mask_device = standard.device(
    masks, claim="The combined mask is on the device of keep and causal.", needs="mask_shape", cases=JOINED[:1]
)


# ------------------------------------------------------------------------------- masked_attention, no row empty


@claims(
    "The attention's output is one tensor of shape (B, H, Tq, Dv).",
    cases=EVERY,
    look_at="how the mask is aligned with the scores, and which dimension the weights sum over",
)
def test_output_shape(attempt, sizes):
    out = attempt.masked_attention(*qkv(sizes, torch.float32), partial(sizes))

    assert_shape(out, (sizes.B, sizes.H, sizes.Tq, sizes.Dv))


@claims(
    "Where every key may be attended to, the output is softmax(q kᵀ / sqrt(D)) v.",
    look_at="the scale, and the dimension of the softmax",
    needs="output_shape",
    cases=EVERY,
)
def test_values(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    mask = all_true(sizes)

    for _ in range(2):  # a second call must be right too
        out = attempt.masked_attention(q, k, v, mask)
        assert_close(out, reference.masked_attention(q, k, v, mask), atol=1e-5)
        q = q.flip(-2)
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "With a mask the output is attention among the keys that each query may attend to.",
    look_at="what True means, what a masked key's weight is, and what the other weights sum to",
    needs="output_shape",
    cases=SOME_MASKED,
)
def test_values_with_mask(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    mask = partial(sizes)

    for given in (mask, mask.roll(1, 0)):  # the same sizes, other flags
        out = attempt.masked_attention(q, k, v, given)
        assert_close(out, reference.masked_attention(q, k, v, given), atol=1e-5)


@claims(
    "A mask of any shape that broadcasts to (B, H, Tq, Tk) is used as it is.",
    look_at="dimensions that you add to the mask, or mix up",
    needs="values_with_mask",
    cases=(*SMALL, SIZES[4]),  # all sizes different; then all equal, where one shape of mask can be taken for another
)
def test_mask_broadcasts(attempt, reference, sizes):
    q, k, v = qkv(sizes)

    for shape in MASKS:
        mask = mask_of(shape, sizes)
        out = attempt.masked_attention(q, k, v, mask)
        what = f"out with a mask of {shape}: out"
        assert_close(out, reference.masked_attention(q, k, v, mask), atol=1e-5, what=what)


@claims(
    "Scores far from 0, up to about 30 and -30, give the formula's values too, with a mask and without.",
    look_at="whether anything limits the scores, and what masked ones are filled with",
    needs="values_with_mask",
    cases=SMALL,
)
def test_strong_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    low = q.clone(), k.clone()  # the first feature takes 30 off every score
    low[0][..., 0], low[1][..., 0] = -6 * sizes.D**0.5, 5.0

    for strong, mask in (((4 * q, 4 * k), all_true(sizes)), (low, partial(sizes))):
        out = attempt.masked_attention(*strong, v, mask)
        # 1e-4, because with scores of 30 an attempt that computes in float32 loses two digits
        assert_close(out, reference.masked_attention(*strong, v, mask), atol=1e-4)


@claims(
    "Masked keys and their values do not change the output.",
    look_at="what a masked score becomes before the softmax, and along which dimension",
    needs="output_shape",
    cases=SOME_MASKED[:3],
)
def test_masked_keys_do_not_matter(attempt, sizes):
    q, k, v = qkv(sizes)
    keep = mask_of("(B, 1, 1, Tk)", sizes)
    masked = ~keep.transpose(-2, -1)  # (B, 1, Tk, 1)

    before = attempt.masked_attention(q, k, v, keep)
    after = attempt.masked_attention(q, torch.where(masked, randn(*k.shape), k), v + masked * 10, keep)

    assert_close(after, before, atol=1e-5, what="out when masked keys and values change: out")


@claims(
    "A query's output changes with the value of every key that it may attend to.",
    look_at="whether True means attend or ignore, and whether every key that may be attended to has a weight",
    needs="output_shape",
    cases=SMALL,
)
def test_kept_keys_matter(attempt, sizes):
    q, k, v = qkv(sizes)
    mask = partial(sizes)
    open_to = mask.expand(sizes.B, sizes.H, sizes.Tq, sizes.Tk)
    before = attempt.masked_attention(q, k, v, mask)
    for key in range(sizes.Tk):
        changed = v.clone()
        changed[:, :, key] += 10
        moved = (attempt.masked_attention(q, k, changed, mask) - before).abs().amax(dim=3)  # (B, H, Tq)
        unmoved = (
            (open_to[..., key] & ~(moved > 1e-6)).nonzero().tolist()
        )  # [sample, head, query]; NaN counts as not moved
        at = str(unmoved[:1])[2:-2]
        assert_holds(not unmoved, f"out[{at}] may attend to key {key} and its value changes, but out[{at}] stays")


@claims(
    "The weights of the keys that a query may attend to sum to 1: if all values are equal, the output is that value.",
    look_at="whether the weights are normalised over the keys, after masked keys lost their weight",
    needs="output_shape",
    cases=SOME_MASKED[:3],
)
def test_weights_sum_to_one(attempt, sizes):
    q, k, v = qkv(sizes)
    same = v[..., :1, :].expand_as(v).contiguous()  # (B, H, Tk, Dv), one value for every key

    out = attempt.masked_attention(q, k, same, partial(sizes))

    assert_close(out, same[..., :1, :].expand_as(out), atol=1e-5, what="out when all values are equal: out")


@claims(
    "A query with one key to attend to gets that key's value.",
    look_at="whether the other keys get any weight",
    needs="output_shape",
    cases=SIZES[:4],
)
def test_one_open_key(attempt, sizes):
    q, k, v = qkv(sizes)
    only = (torch.arange(sizes.Tq) + sizes.Tk - 1) % sizes.Tk  # (Tq,): the last key, the first, the second, ...

    out = attempt.masked_attention(q, k, v, torch.arange(sizes.Tk) == only[:, None])

    assert_close(out, v[:, :, only], atol=1e-5, what="out with one key to attend to: out")


@claims(
    "A query's output does not depend on the other queries, nor on their rows of the mask.",
    look_at="whether the softmax runs over the keys, the last dimension of the scores",
    needs="output_shape",
    cases=SMALL,
)
def test_queries_are_independent(attempt, sizes):
    q, k, v = qkv(sizes)
    mask = partial(sizes)
    changed, other = q.clone(), mask.clone()
    changed[..., 1:, :] = randn(*changed[..., 1:, :].shape)
    other[..., 1:, :] = ~mask[..., 1:, :]

    before = attempt.masked_attention(q, k, v, mask)
    after = attempt.masked_attention(changed, k, v, other)

    assert_close(after[..., :1, :], before[..., :1, :], atol=1e-5, what="out[..., :1, :] when the later queries change")


@claims(
    "Samples and heads do not mix: changing one does not change the others.",
    look_at="whether the softmax, a reshape or the mask reaches across samples or heads",
    needs="output_shape",
    cases=SMALL,
)
def test_samples_and_heads_are_independent(attempt, sizes):
    q, k, v = qkv(sizes)
    mask = mask_of("(B, H, Tq, Tk)", sizes)
    before = attempt.masked_attention(q, k, v, mask)
    for place, rest in (((0,), (slice(1, None),)), ((slice(None), 0), (slice(None), slice(1, None)))):
        changed, other = [part.clone() for part in (q, k, v)], mask.clone()
        for part in changed:
            part[place] = randn(*part[place].shape)
        other[place] = ~mask[place]
        after = attempt.masked_attention(*changed, other)

        what = "out of the others when one sample or head changes: out"
        assert_close(after[rest], before[rest], atol=1e-5, what=what)


test_gradients = standard.gradients(
    attention,
    claim="Gradients to q, k and v are those of the formula, masked keys included.",
    needs="values_with_mask",
    cases=SIZES[:3],
)


# ---------------------------------------------------------------------------------------------------- empty rows


@claims(
    "A query with nothing to attend to gets exactly 0.",
    look_at="what the softmax gives for a row in which everything is masked",
    needs="output_shape",
    cases=(*SMALL, *SIZES[2:5]),
)
def test_empty_rows_get_zero(attempt, sizes):
    q, k, v = qkv(sizes)
    for which, (mask, empty) in with_empty_rows(sizes).items():
        out = attempt.masked_attention(q, k, v, mask)
        nothing = torch.where(empty, out, 0.0)
        mean = torch.where(empty, v.mean(-2, keepdim=True), 0.0)
        is_mean = bool(((nothing - mean).abs() < 1e-5).all())
        assert_holds(not is_mean, f"out is the mean of all values where {which} may attend to nothing, expected 0")
        what = f"out of empty rows (the rest is shown as 0), when {which} may attend to nothing: out"
        assert_close(nothing, torch.zeros_like(out), atol=0.0, what=what)


@claims(
    "Empty rows do not change the other queries.",
    look_at="how empty rows are handled, and which other rows this changes",
    needs=("values_with_mask", "empty_rows_get_zero"),
    cases=(*SMALL, SIZES[4]),
)
def test_empty_rows_leave_others(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    for mask, _ in with_empty_rows(sizes).values():
        out = attempt.masked_attention(q, k, v, mask)
        assert_close(out, reference.masked_attention(q, k, v, mask), atol=1e-5, what="out beside empty rows: out")


@claims(
    "With empty rows all gradients are finite, and those of the formula: an empty row adds nothing.",
    look_at="NaN in the backward pass, even where the forward pass replaces it: 0 times NaN is NaN",
    needs=("gradients", "empty_rows_get_zero"),
    cases=(*SMALL, *SIZES[2:4]),
)
def test_empty_rows_have_gradients(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    for which, (mask, _) in with_empty_rows(sizes).items():
        cotangent = randn(sizes.B, sizes.H, sizes.Tq, sizes.Dv)
        result = attempt.masked_attention.run(q, k, v, mask, cotangent=cotangent)
        for name, gradient in zip("qkv", result.input_gradients, strict=True):
            count = 0 if gradient is None else int((~gradient.isfinite()).sum())
            told = f"the gradient of {name} has {count} entries that are not finite when {which} may attend to nothing"
            assert_holds(count == 0, told)
        check_gradients(attempt.masked_attention, reference.masked_attention, q, k, v, mask)


@claims(
    "With left padding and a causal mask, a sample gives the same output as alone, and its padded queries give 0.",
    look_at="how the two functions work together",
    needs=("mask_where_both_allow", "values_with_mask"),
    cases=(Sizes(B=3, H=2, Tq=5, Tk=5, D=4, Dv=6), Sizes(B=2, H=3, Tq=4, Tk=4, D=5, Dv=3)),
)
def test_left_padding(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    padding = [(2 * sample + 1) % sizes.Tk for sample in range(sizes.B)]  # tokens on the left of each sample
    causal = all_true(sizes).tril()

    mask = attempt.combine_masks(torch.arange(sizes.Tk) >= torch.tensor(padding)[:, None], causal)
    out = attempt.masked_attention(q, k, v, mask)

    for sample, count in enumerate(padding):
        alone = [part[sample : sample + 1, :, count:] for part in (q, k, v)]
        expected = torch.zeros(1, sizes.H, sizes.Tq, sizes.Dv, dtype=torch.float64)
        expected[:, :, count:] = reference.masked_attention(*alone, causal[count:, count:])
        what = f"out of sample {sample}, with {count} tokens of left padding: out"
        assert_close(out[sample : sample + 1], expected, atol=1e-5, what=what)


# --------------------------------------------------------------------------------------------- true of every kata


test_output_dtype = standard.output_dtype(attention, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(attention, needs="values_with_mask", cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(attention, needs="output_shape", cases=SMALL[:1], calls=some_empty)
test_non_contiguous_inputs = standard.non_contiguous_inputs(attention, needs="values_with_mask", cases=SMALL)
test_device = standard.device(attention, needs="output_shape", cases=SMALL[:1])


# ------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Scores of about 1e4 in float32 give finite, right results, masked keys included.",
    tier="edge",
    needs="values_with_mask",
    cases=SMALL,
    look_at="exp of a large number, and what masked scores are filled with",
)
def test_large_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    keep = mask_of("(B, 1, 1, Tk)", sizes)
    q, k = (q * 100).round(), (k * 100).round()  # integers, so that float32 scores are nearly exact
    for masked in (1, 3):  # the largest scores may be masked ones
        keys = torch.where(keep.transpose(-2, -1), k, masked * k)

        out = attempt.masked_attention(q.float(), keys.float(), v.float(), keep)

        assert_close(out, reference.masked_attention(q, keys, v, keep), atol=1e-2, what="out")


test_half_precision = standard.half_precision(
    attention, needs="values_with_mask", cases=SMALL, terms=lambda sizes: sizes.Tk, calls=some_empty
)
test_float64_throughout = standard.float64_throughout(attention, needs="values_with_mask", cases=SMALL)
test_own_memory = standard.own_memory(attention, needs="output_shape", cases=(SIZES[0], SIZES[3]))
