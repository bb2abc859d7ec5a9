"""Hidden tests of padding_mask: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Drawn,
    Sizes,
    assert_close,
    assert_equal,
    assert_holds,
    assert_shape,
    claims,
    flags_first,
    flags_with_gaps,
    randn,
    standard,
    strided,
)

MASKS = (
    Sizes(B=2, max_len=3),
    Sizes(B=4, max_len=5),
    Sizes(B=3, max_len=1),
    Sizes(B=1, max_len=6),
    Sizes(B=5, max_len=5),
    Sizes(B=7, max_len=300),
    Sizes(B=2, max_len=1100),
    Drawn(B=(1, 9), max_len=(1, 60)),
)
SIZES = (
    Sizes(B=2, H=3, Tq=4, Tk=5, D=7, Dv=6),
    Sizes(B=3, H=2, Tq=6, Tk=4, D=5, Dv=8),
    Sizes(B=2, H=1, Tq=1, Tk=3, D=6, Dv=2),
    Sizes(B=4, H=2, Tq=3, Tk=1, D=2, Dv=5),
    Sizes(B=1, H=2, Tq=5, Tk=150, D=1, Dv=3),
    Sizes(B=2, H=3, Tq=131, Tk=8, D=9, Dv=5),
    Sizes(B=2, H=3, Tq=4, Tk=5, D=3, Dv=1),
    Sizes(B=1, H=2, Tq=3, Tk=4, D=70, Dv=66),
)
EVERY = (*SIZES, Drawn(B=(1, 4), H=(1, 4), Tq=(1, 30), Tk=(1, 30), D=(1, 24), Dv=(1, 24)))
SMALL = SIZES[:2]
PADDED = (
    *(sizes for sizes in SIZES if sizes.Tk > 1),
    Drawn(B=(1, 4), H=(1, 4), Tq=(1, 30), Tk=(2, 30), D=(1, 24), Dv=(1, 24)),
)
# B is equal to one other size in each, and to all of them in the last.
EQUAL = (
    Sizes(B=3, H=2, Tq=3, Tk=5, D=6, Dv=7),
    Sizes(B=3, H=3, Tq=2, Tk=5, D=6, Dv=7),
    Sizes(B=5, H=2, Tq=3, Tk=5, D=6, Dv=7),
    Sizes(B=3, H=3, Tq=3, Tk=3, D=3, Dv=3),
)


def some_lengths(count, longest, dtype=torch.int64):
    """(count,) lengths in [1, longest], unsorted: half of it, 1, all of it, one less, and again."""
    pattern = ((longest + 1) // 2, 1, longest, max(1, longest - 1))
    return torch.tensor([pattern[i % 4] for i in range(count)], dtype=dtype)


def qkv(sizes, dtype=torch.float64):
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv)."""
    return (
        randn(sizes.B, sizes.H, sizes.Tq, sizes.D, dtype=dtype),
        randn(sizes.B, sizes.H, sizes.Tk, sizes.D, dtype=dtype),
        randn(sizes.B, sizes.H, sizes.Tk, sizes.Dv, dtype=dtype),
    )


def all_real(sizes):
    return torch.ones(sizes.B, sizes.Tk, dtype=torch.bool)


def right_padding(sizes):
    """(B, Tk): real tokens first; one sample has a single one."""
    return flags_first(sizes.B, sizes.Tk)


def left_padding(sizes):
    """(B, Tk): real tokens last."""
    return right_padding(sizes).flip(-1)


def gaps(sizes):
    """(B, Tk): every other token is real, from the second on, then from the first on."""
    return flags_with_gaps(sizes.B, sizes.Tk)


masks = standard.function(
    "padding_mask",
    lambda sizes: [
        (some_lengths(sizes.B, sizes.max_len, dtype), sizes.max_len) for dtype in (torch.int32, torch.int64)
    ],
    inputs="lengths",
)
attention = standard.function(
    "padded_attention",
    lambda sizes: [(*qkv(sizes), right_padding(sizes)), (*qkv(sizes), gaps(sizes))],
    inputs="q, k, v and keep",
    terms=lambda sizes: sizes.Tk * sizes.D,
)
test_from_scratch = standard.from_scratch(
    attention,
    calls=lambda sizes: [(*qkv(sizes), keep) for keep in (all_real(sizes), right_padding(sizes))],
    blocks=FORBIDDEN_ATTENTIONS,
    cases=(Sizes(B=2, H=3, Tq=131, Tk=150, D=5, Dv=7),),
)


# ---------------------------------------------------------------------------------------------------- padding_mask


@claims(
    "The mask is bool, of shape (B, max_len).",
    cases=MASKS,
    look_at="how wide the mask is when no sample is that long, and its dtype",
)
def test_mask_shape(attempt, sizes):
    for lengths in (some_lengths(sizes.B, sizes.max_len), torch.ones(sizes.B, dtype=torch.int64)):
        mask = attempt.padding_mask(lengths, sizes.max_len)

        assert_shape(mask, (sizes.B, sizes.max_len), what="the mask")
        assert_holds(mask.dtype == torch.bool, f"the mask is {mask.dtype}, expected torch.bool")


@claims(
    "The mask is True at the first lengths[b] positions of row b, and False after them.",
    look_at="the comparison of positions and lengths, at both of its ends",
    needs="mask_shape",
    cases=MASKS,
)
def test_mask_marks_real_tokens(attempt, reference, sizes):
    lengths = some_lengths(sizes.B, sizes.max_len)
    for given in (lengths, lengths.roll(1)):  # the same sizes, other lengths
        mask = attempt.padding_mask(given, sizes.max_len)

        assert_equal(mask, reference.padding_mask(given, sizes.max_len), what="mask", rows="sample", columns="position")


@claims(
    "A length of 0 gives a row of False, and a length of max_len a row of True.",
    look_at="what happens at the smallest and the largest length",
    needs="mask_shape",
    cases=MASKS,
)
def test_mask_of_empty_and_full(attempt, sizes):
    full = torch.arange(sizes.B) % 2 == 1  # (B,): sample 0 is empty, sample 1 full, and so on
    for chosen in (full, ~full):
        mask = attempt.padding_mask(chosen * sizes.max_len, sizes.max_len)
        expected = chosen[:, None].expand(sizes.B, sizes.max_len).contiguous()

        assert_equal(mask, expected, what="mask", rows="sample", columns="position")


@claims(
    "lengths may be int32 or int64, contiguous or not.",
    look_at="operations that take one integer type only",
    needs="mask_marks_real_tokens",
    cases=MASKS[1:2],
)
def test_mask_takes_any_lengths(attempt, reference, sizes):
    for dtype in (torch.int32, torch.int64):
        lengths = some_lengths(sizes.B, sizes.max_len, dtype)
        for given in (lengths, strided(lengths)):
            mask = attempt.padding_mask(given, sizes.max_len)

            assert_equal(
                mask, reference.padding_mask(lengths, sizes.max_len), what="mask", rows="sample", columns="position"
            )


test_lengths_unmodified = standard.inputs_unmodified(
    masks, look_at="in-place operations on lengths", needs="mask_shape", cases=MASKS[1:2]
)
test_mask_device = standard.device(
    masks, claim="The mask is on the device of lengths.", needs="mask_shape", cases=MASKS[1:2]
)


# ------------------------------------------------------------------------------------------------ padded_attention


@claims(
    "The attention's output is one tensor of shape (B, H, Tq, Dv).",
    cases=EVERY,
    look_at="how keep is aligned with the scores, and which dimension the weights sum over",
)
def test_output_shape(attempt, sizes):
    out = attempt.padded_attention(*qkv(sizes, torch.float32), right_padding(sizes))

    assert_shape(out, (sizes.B, sizes.H, sizes.Tq, sizes.Dv))


@claims(
    "Where every key is real, the output is softmax(q kᵀ / sqrt(D)) v.",
    look_at="the scale, and the dimension of the softmax",
    needs="output_shape",
    cases=EVERY,
)
def test_values(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    keep = all_real(sizes)

    for _ in range(2):  # a second call must be right too
        out = attempt.padded_attention(q, k, v, keep)
        assert_close(out, reference.padded_attention(q, k, v, keep), atol=1e-5)
        q = q.flip(-2)
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "With padding at the end, the output is attention among the real keys only.",
    look_at="what a padded key's weight is, and what the other weights sum to",
    needs="output_shape",
    cases=PADDED,
)
def test_values_with_padding(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    keep = right_padding(sizes)

    for given in (keep, keep.roll(1, 0)):  # the same sizes, other flags
        out = attempt.padded_attention(q, k, v, given)
        assert_close(out, reference.padded_attention(q, k, v, given), atol=1e-5)


@claims(
    "Real tokens may be anywhere: padding may be on the left and between them.",
    look_at="whether each key's own flag is read, or only how many there are",
    needs="values_with_padding",
    cases=PADDED[:3],
)
def test_real_tokens_anywhere(attempt, reference, sizes):
    q, k, v = qkv(sizes)

    for where, keep in (("on the left", left_padding(sizes)), ("between real tokens", gaps(sizes))):
        out = attempt.padded_attention(q, k, v, keep)
        what = f"out with padding {where}: out"
        assert_close(out, reference.padded_attention(q, k, v, keep), atol=1e-5, what=what)


@claims(
    "Scores far from 0, up to about 30 and -30, give the formula's values too, with padding and without.",
    look_at="whether anything limits the scores, and what padded ones are filled with",
    needs="values_with_padding",
    cases=SMALL,
)
def test_strong_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    low = q.clone(), k.clone()  # the first feature takes 30 off every score
    low[0][..., 0], low[1][..., 0] = -6 * sizes.D**0.5, 5.0

    for strong, keep in (((4 * q, 4 * k), all_real(sizes)), (low, right_padding(sizes))):
        out = attempt.padded_attention(*strong, v, keep)
        # 1e-4, because with scores of 30 an attempt that computes in float32 loses two digits
        assert_close(out, reference.padded_attention(*strong, v, keep), atol=1e-4)


@claims(
    "Padded keys and their values do not change the output.",
    look_at="what a padded score becomes before the softmax, and along which dimension",
    needs="output_shape",
    cases=PADDED[:3],
)
def test_padded_keys_do_not_matter(attempt, sizes):
    q, k, v = qkv(sizes)
    for keep in (right_padding(sizes), left_padding(sizes)):
        padded = ~keep[:, None, :, None]  # (B, 1, Tk, 1)
        before = attempt.padded_attention(q, k, v, keep)
        after = attempt.padded_attention(q, torch.where(padded, randn(*k.shape), k), v + padded * 10, keep)

        assert_close(after, before, atol=1e-5, what="out when padded keys and values change: out")


@claims(
    "The output of every query changes with the value of every real key of its sample.",
    look_at="whether True means real or padded, and whether every real key has a weight",
    needs="output_shape",
    cases=SMALL,
)
def test_real_keys_matter(attempt, sizes):
    q, k, v = qkv(sizes)
    # Scores near 0, so that no weight is nearly 0, for any scale.
    q = q / 4
    keep = gaps(sizes)
    before = attempt.padded_attention(q, k, v, keep)
    for key in range(sizes.Tk):
        changed = v.clone()
        changed[:, :, key] += 10
        moved = (attempt.padded_attention(q, k, changed, keep) - before).abs().amax(dim=3)  # (B, H, Tq)
        for sample in keep[:, key].nonzero().flatten().tolist():
            unmoved = (~(moved[sample] > 1e-6)).nonzero().tolist()  # [head, query] each; NaN counts as not moved
            real, out = f"v[{sample}, :, {key}]", f"out[{sample}, {str(unmoved[:1])[2:-2]}]"
            assert_holds(not unmoved, f"{real} is real and changes by 10, but {out} stays as it was")


@claims(
    "The weights of the real keys sum to 1: if all values are equal, the output is that value.",
    look_at="whether the weights are normalised over the keys, after padded keys lost their weight",
    needs="output_shape",
    cases=PADDED[:3],
)
def test_weights_sum_to_one(attempt, sizes):
    q, k, v = qkv(sizes)
    same = v[..., :1, :].expand_as(v).contiguous()  # (B, H, Tk, Dv), one value for every key

    out = attempt.padded_attention(q, k, same, right_padding(sizes))

    assert_close(out, same[..., :1, :].expand_as(out), atol=1e-5, what="out when all values are equal: out")


@claims(
    "A sample with one real key gets that key's value, for every query.",
    look_at="whether the other keys get any weight",
    needs="output_shape",
    cases=(*PADDED[:3], SIZES[3]),
)
def test_one_real_key(attempt, sizes):
    q, k, v = qkv(sizes)
    only = (torch.arange(sizes.B) + sizes.Tk - 1) % sizes.Tk  # (B,): the last key, the first, the second, ...
    keep = torch.arange(sizes.Tk) == only[:, None]

    out = attempt.padded_attention(q, k, v, keep)

    expected = v[torch.arange(sizes.B), :, only][:, :, None, :].expand_as(out)  # (B, H, Tq, Dv)
    assert_close(out, expected, atol=1e-5, what="out with one real key: out")


@claims(
    "Each sample has its own flags, also where B equals H, Tq or Tk.",
    look_at="how (B, Tk) is aligned with (B, H, Tq, Tk)",
    needs="values",
    cases=EQUAL,
)
def test_flags_belong_to_their_sample(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    keep = right_padding(sizes)

    out = attempt.padded_attention(q, k, v, keep)

    assert_close(out, reference.padded_attention(q, k, v, keep), atol=1e-5)


@claims(
    "Padded queries are not masked: with Tq = Tk, queries at padded positions attend like the others.",
    look_at="whether the flags act on keys only",
    cases=(Sizes(B=2, H=3, Tq=5, Tk=5, D=6, Dv=7), Sizes(B=3, H=1, Tq=4, Tk=4, D=2, Dv=5)),
)
def test_padded_queries_attend(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    keep = right_padding(sizes)
    padded = ~keep[:, None, :, None]  # (B, 1, Tq, 1)

    out = attempt.padded_attention(q, k, v, keep)

    expected = reference.padded_attention(q, k, v, keep)
    assert_close(out * padded, expected * padded, atol=1e-5, what="out at padded queries (the rest is shown as 0): out")


@claims(
    "A query's output does not depend on the other queries.",
    look_at="whether the softmax runs over the keys, the last dimension of the scores",
    needs="output_shape",
    cases=SMALL,
)
def test_queries_are_independent(attempt, sizes):
    q, k, v = qkv(sizes)
    keep = right_padding(sizes)
    changed = q.clone()
    changed[..., 1:, :] = randn(*changed[..., 1:, :].shape)

    before = attempt.padded_attention(q, k, v, keep)
    after = attempt.padded_attention(changed, k, v, keep)

    assert_close(after[..., :1, :], before[..., :1, :], atol=1e-5, what="out[..., :1, :] when the later queries change")


@claims(
    "Samples and heads do not mix: changing one does not change the others.",
    look_at="whether the softmax, a reshape or the flags reach across samples or heads",
    needs="output_shape",
    cases=SMALL,
)
def test_samples_and_heads_are_independent(attempt, sizes):
    q, k, v = qkv(sizes)
    keep = gaps(sizes)
    before = attempt.padded_attention(q, k, v, keep)
    for place, rest in (((0,), (slice(1, None),)), ((slice(None), 0), (slice(None), slice(1, None)))):
        changed = [part.clone() for part in (q, k, v)]
        for part in changed:
            part[place] = randn(*part[place].shape)
        flags = keep.clone()
        if place == (0,):
            flags[0] = ~keep[0]
        after = attempt.padded_attention(*changed, flags)

        assert_close(
            after[rest], before[rest], atol=1e-5, what="out of the others when one sample or head changes: out"
        )


test_gradients = standard.gradients(
    attention,
    claim="Gradients to q, k and v are those of the formula, padding included.",
    needs="values_with_padding",
    cases=SIZES[:3],
)
test_output_dtype = standard.output_dtype(attention, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(attention, needs="values_with_padding", cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(
    attention,
    calls=lambda sizes: [(*qkv(sizes), keep) for keep in (right_padding(sizes), all_real(sizes))],
    needs="output_shape",
    cases=SMALL[:1],
)
test_non_contiguous_inputs = standard.non_contiguous_inputs(attention, needs="values_with_padding", cases=SMALL)
test_device = standard.device(attention, needs="output_shape", cases=SMALL[:1])


# ------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "A query with nothing to attend to gets exactly 0, with finite gradients.",
    tier="edge",
    look_at="what the softmax gives for a row whose keys are all masked",
    needs="values_with_padding",
    cases=(*SMALL, SIZES[3]),
)
def test_nothing_to_attend_to(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    keep = right_padding(sizes)
    keep[1] = False  # only sample 1 has no real key
    cotangent = randn(sizes.B, sizes.H, sizes.Tq, sizes.Dv)

    result = attempt.padded_attention.run(q, k, v, keep, cotangent=cotangent)

    empty = result.output[1]  # (H, Tq, Dv)
    assert_close(empty, torch.zeros_like(empty), atol=0.0, what="out of the sample without a real key: out")
    assert_close(result.output, reference.padded_attention(q, k, v, keep), atol=1e-5)
    for name, gradient in zip("qkv", result.input_gradients, strict=True):
        finite = gradient is None or bool(gradient.isfinite().all())
        assert_holds(finite, f"the gradient of {name} is not finite when a sample has no real key")


@claims(
    "Scores of about 1e4 in float32 give finite, right results, padded keys included.",
    tier="edge",
    needs="values_with_padding",
    cases=SMALL,
    look_at="exp of a large number, and what padded scores are filled with",
)
def test_large_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    keep = right_padding(sizes)
    q, k = (q * 100).round(), (k * 100).round()  # integers, so that float32 scores are nearly exact
    for padded in (1, 3):  # the largest scores may be those of padding
        keys = torch.where(keep[:, None, :, None], k, padded * k)

        out = attempt.padded_attention(q.float(), keys.float(), v.float(), keep)

        assert_close(out, reference.padded_attention(q, keys, v, keep), atol=1e-2, what="out")


test_half_precision = standard.half_precision(
    attention, needs="values_with_padding", cases=SMALL, terms=lambda sizes: sizes.Tk
)
test_float64_throughout = standard.float64_throughout(attention, needs="values_with_padding", cases=SMALL)
test_own_memory = standard.own_memory(attention, needs="output_shape", cases=(SIZES[0], SIZES[3]))
