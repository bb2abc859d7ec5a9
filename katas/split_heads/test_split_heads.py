"""Hidden tests of split_heads: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    Drawn,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
    check_raises_value_error,
    claims,
    randn,
    standard,
)


def sized(*, H, D, **sizes):
    return Sizes(H=H, D=D, E=H * D, **sizes)


SIZES = (
    Sizes(B=2, H=5, T=3, D=2, E=10),
    Sizes(B=3, H=2, T=4, D=7, E=14),
    Sizes(B=4, H=2, T=1, D=3, E=6),
    Sizes(B=2, H=1, T=5, D=3, E=3),
    Sizes(B=2, H=5, T=4, D=1, E=5),
    Sizes(B=3, H=3, T=3, D=3, E=9),
    Sizes(B=1, H=3, T=6, D=5, E=15),
    Sizes(B=2, H=6, T=6, D=2, E=12),
    Sizes(B=2, H=3, T=150, D=2, E=6),
    Sizes(B=2, H=1, T=3, D=1, E=1),
    Sizes(B=1, H=2, T=3, D=70, E=140),
)
EVERY = (*SIZES, Drawn(sized, B=(1, 4), H=(1, 5), T=(1, 30), D=(1, 24)))
SMALL = SIZES[:2]


def whole(sizes):
    """(B, T, E)."""
    return randn(sizes.B, sizes.T, sizes.E)


def heads(sizes):
    """(B, H, T, D)."""
    return randn(sizes.B, sizes.H, sizes.T, sizes.D)


split = standard.function(
    "split_heads", lambda sizes: [(whole(sizes), sizes.H)], inputs="x", rows="token", columns="column"
)
merge = standard.function("merge_heads", lambda sizes: [(heads(sizes),)], inputs="x", rows="token", columns="column")


# ------------------------------------------------------------------------------------------------------ split_heads


@claims("split_heads gives one tensor of shape (B, H, T, D).", look_at="the order of the dimensions", cases=EVERY)
def test_split_shape(attempt, sizes):
    out = attempt.split_heads(whole(sizes), sizes.H)

    assert_shape(out, (sizes.B, sizes.H, sizes.T, sizes.D))


@claims(
    "split_heads keeps tokens apart: row t of every head holds numbers of token t only.",
    look_at="the order of the numbers in memory when the shape changes",
    needs="split_shape",
    cases=SIZES[:3],
)
def test_split_keeps_tokens(attempt, sizes):
    number = torch.arange(sizes.B * sizes.T, dtype=torch.float64).reshape(sizes.B, sizes.T, 1)
    x = number.repeat(1, 1, sizes.E)  # every token filled with its number

    out = attempt.split_heads(x, sizes.H)

    expected = number[:, None].expand_as(out)  # (B, 1, T, 1)
    assert_close(out, expected, atol=1e-5, what="out when each token is filled with its number: out", rows="token")


@claims(
    "In split_heads head h holds columns h*D to (h+1)*D.",
    look_at="which factor of E comes first",
    needs="split_shape",
    cases=(*SIZES[:3], SIZES[5]),
)
def test_split_columns(attempt, sizes):
    number = torch.arange(sizes.E, dtype=torch.float64)
    x = number.repeat(sizes.B, sizes.T, 1)  # every column filled with its number

    out = attempt.split_heads(x, sizes.H)

    expected = torch.stack([number[h * sizes.D : (h + 1) * sizes.D] for h in range(sizes.H)])  # (H, D)
    what = "out when each column is filled with its number: out"
    assert_close(out, expected[None, :, None].expand_as(out), atol=1e-5, what=what, rows="token")


@claims(
    "split_heads(x, H)[b, h, t, d] is x[b, t, h*D + d].",
    look_at="the two steps from (B, T, E) to (B, H, T, D)",
    needs="split_shape",
    cases=EVERY,
)
def test_split_values(attempt, reference, sizes):
    x = whole(sizes)

    for _ in range(2):  # a second call must be right too
        out = attempt.split_heads(x, sizes.H)
        assert_close(out, reference.split_heads(x, sizes.H), atol=1e-5, rows="token")
        x = 0.5 - x
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "split_heads raises ValueError where H does not divide E.",
    look_at="whether the remainder of E divided by H is checked",
    needs="split_shape",
    cases=(Sizes(B=2, T=3, E=6, H=4), Sizes(B=2, T=3, E=10, H=3), Sizes(B=2, T=6, E=2, H=3), Sizes(B=3, T=4, E=7, H=2)),
)
def test_indivisible_heads(attempt, sizes):
    x = whole(sizes)

    check_raises_value_error(
        lambda: attempt.split_heads(x, sizes.H), f"split_heads of a width of {sizes.E} into {sizes.H} heads"
    )


# ------------------------------------------------------------------------------------------------------ merge_heads


@claims("merge_heads gives one tensor of shape (B, T, E).", look_at="the order of the dimensions", cases=EVERY)
def test_merge_shape(attempt, sizes):
    assert_shape(attempt.merge_heads(heads(sizes)), (sizes.B, sizes.T, sizes.E))


@claims(
    "merge_heads keeps tokens apart: row t of the result holds numbers of token t only.",
    look_at="the order of the numbers in memory when the shape changes",
    needs="merge_shape",
    cases=SIZES[:3],
)
def test_merge_keeps_tokens(attempt, sizes):
    number = torch.arange(sizes.B * sizes.T, dtype=torch.float64).reshape(sizes.B, sizes.T, 1)
    x = number[:, None].repeat(1, sizes.H, 1, sizes.D)  # every token filled with its number

    out = attempt.merge_heads(x)

    what = "out when each token is filled with its number: out"
    assert_close(out, number.expand_as(out), atol=1e-5, what=what, rows="token", columns="column")


@claims(
    "In merge_heads columns h*D to (h+1)*D hold head h.",
    look_at="which index changes faster along a row: the head or the feature",
    needs="merge_shape",
    cases=(*SIZES[:3], SIZES[5]),
)
def test_merge_columns(attempt, sizes):
    number = torch.arange(sizes.H, dtype=torch.float64)
    x = number[None, :, None, None].repeat(sizes.B, 1, sizes.T, sizes.D)  # every head filled with its number

    out = attempt.merge_heads(x)

    expected = torch.cat([number[h].repeat(sizes.D) for h in range(sizes.H)])  # (E,)
    what = "out when each head is filled with its number: out"
    assert_close(out, expected.expand_as(out), atol=1e-5, what=what, rows="token", columns="column")


@claims(
    "merge_heads(x)[b, t, h*D + d] is x[b, h, t, d].",
    look_at="the two steps from (B, H, T, D) to (B, T, E)",
    needs="merge_shape",
    cases=EVERY,
)
def test_merge_values(attempt, reference, sizes):
    x = heads(sizes)

    for _ in range(2):
        out = attempt.merge_heads(x)
        assert_close(out, reference.merge_heads(x), atol=1e-5, rows="token", columns="column")
        x = 0.5 - x


# ------------------------------------------------------------------------------------------------- the two together


@claims(
    "The functions are inverse: merge_heads(split_heads(x)) is x, and split_heads(merge_heads(x)) is x.",
    look_at="whether merge_heads undoes the steps of split_heads in reverse order",
    needs=("split_shape", "merge_shape"),
    cases=(*SMALL, *SIZES[5:8]),
)
def test_round_trip(attempt, sizes):
    x, y = whole(sizes), heads(sizes)

    back = attempt.merge_heads(attempt.split_heads(x, sizes.H))
    and_back = attempt.split_heads(attempt.merge_heads(y), sizes.H)

    assert_close(back, x, atol=1e-5, what="merge_heads(split_heads(x)): out", rows="token", columns="column")
    assert_close(and_back, y, atol=1e-5, what="split_heads(merge_heads(x)): out", rows="token")


test_gradients = standard.gradients(
    split,
    merge,
    look_at="whether any step is detached, or makes a new tensor from plain numbers",
    needs=("split_values", "merge_values"),
    cases=SIZES[:4],
)
test_output_dtype = standard.output_dtype(split, merge, needs=("split_shape", "merge_shape"), cases=SMALL[:1])
test_float32 = standard.float32(split, merge, needs=("split_values", "merge_values"), cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(
    split,
    merge,
    look_at="operations whose names end in _",
    needs=("split_shape", "merge_shape"),
    cases=(SMALL[0], SIZES[5]),
)
test_split_of_strided = standard.non_contiguous_inputs(
    split, claim="split_heads takes a non-contiguous x, such as a transposed tensor.", needs="split_values", cases=SMALL
)
test_merge_of_strided = standard.non_contiguous_inputs(
    merge,
    claim="merge_heads takes a non-contiguous x, such as the result of split_heads.",
    needs="merge_values",
    cases=SMALL,
)
test_device = standard.device(split, merge, needs=("split_shape", "merge_shape"), cases=SMALL[:1])


# --------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Splitting a contiguous x copies nothing.",
    tier="edge",
    look_at="which of your steps copies the numbers",
    needs="split_values",
    cases=(*SMALL, *SIZES[2:4]),
)
def test_split_copies_nothing(attempt, sizes):
    result = attempt.split_heads.run(whole(sizes), sizes.H)

    assert_holds(result.shares_input, "the result of split_heads is not in the memory of x: it was copied")


test_half_precision = standard.half_precision(
    split, merge, look_at="operations that some dtypes do not have", needs=("split_values", "merge_values"), cases=SMALL
)
test_float64_throughout = standard.float64_throughout(split, merge, needs=("split_values", "merge_values"), cases=SMALL)
