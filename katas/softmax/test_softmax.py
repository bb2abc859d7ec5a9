"""Hidden tests of softmax: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    FORBIDDEN_SOFTMAXES,
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

INF = float("inf")

# x is (B, T, N), normalised along dim.
SIZES = (
    Sizes(B=2, T=3, N=5, dim=-1),
    Sizes(B=3, T=5, N=4, dim=1),
    Sizes(B=4, T=2, N=3, dim=0),
    Sizes(B=2, T=6, N=3, dim=-2),
    Sizes(B=3, T=3, N=3, dim=1),
    Sizes(B=3, T=3, N=3, dim=-1),
    Sizes(B=1, T=4, N=2, dim=2),
    Sizes(B=3, T=1, N=2, dim=1),
    Sizes(B=2, T=150, N=3, dim=1),
    Sizes(B=2, T=3, N=300, dim=-1),
    Sizes(B=2, T=3, N=1, dim=1),
    Sizes(B=1, T=66, N=70, dim=-1),
)
EVERY = (*SIZES, Drawn(B=(1, 30), T=(1, 30), N=(1, 30), dim=(-3, 2)))
SMALL = SIZES[:4]


def entries(sizes):
    """x (B, T, N), with a spread that leaves the results neither flat nor saturated."""
    return 1.5 * randn(sizes.B, sizes.T, sizes.N)


def quarters(sizes):
    """As `entries`, in quarters: exact in float32 at 1e4 too."""
    return (4 * entries(sizes)).round() / 4


def slices(sizes):
    """The number of each slice, (B, T, N) with size 1 at dim: 0, 1, 2, ..."""
    shape = [sizes.B, sizes.T, sizes.N]
    shape[sizes.dim] = 1
    return torch.arange(shape[0] * shape[1] * shape[2]).reshape(shape)


def some_hidden(sizes):
    """(B, T, N) bool: about a third of the entries, and all but one of every third slice; never a whole slice."""
    shown = torch.rand(sizes.B, sizes.T, sizes.N).argmax(dim=sizes.dim, keepdim=True)  # one of each slice
    hidden = torch.rand(sizes.B, sizes.T, sizes.N) < 0.35
    hidden = hidden | (slices(sizes) % 3 == 1)
    return hidden.scatter(sizes.dim % 3, shown, False)


softmax = standard.function(
    "softmax",
    lambda sizes: [(x, sizes.dim) for x in (entries(sizes), entries(sizes).masked_fill(some_hidden(sizes), -INF))],
    inputs="x",
    terms=lambda sizes: sizes.T * sizes.N,
    rows="row",
    columns="column",
)


def plain(sizes):
    return [(entries(sizes), sizes.dim)]


def difficult(sizes):
    """Ordinary entries, large ones, some at -inf, and whole slices at -inf."""
    x = entries(sizes)
    empty = slices(sizes) % 2 == 1
    every = (x, x + 1e4, x.masked_fill(some_hidden(sizes), -INF), x.masked_fill(empty, -INF))
    return [(values, sizes.dim) for values in every]


test_from_scratch = standard.from_scratch(
    softmax,
    claim="No ready-made softmax or attention is called.",
    blocks=FORBIDDEN_SOFTMAXES + FORBIDDEN_ATTENTIONS,
    cases=(SIZES[0], SIZES[2], SIZES[9]),
)


# ----------------------------------------------------------------------------------------------- ordinary entries


@claims("The result is one tensor of the shape of x.", look_at="what every reduction does to the shape", cases=EVERY)
def test_output_shape(attempt, sizes):
    out = attempt.softmax(entries(sizes), sizes.dim)

    assert_shape(out, (sizes.B, sizes.T, sizes.N))


@claims(
    "Along dim, the result is exp(x_i) / (sum of exp(x_j)).",
    look_at="along which dimension each reduction runs, and how its result broadcasts to x",
    needs="output_shape",
    cases=EVERY,
)
def test_values(attempt, reference, sizes):
    x = entries(sizes)

    for _ in range(2):  # a second call must be right too
        out = attempt.softmax(x, sizes.dim)
        assert_close(out, reference.softmax(x, sizes.dim), atol=1e-5, rows="row", columns="column")
        x = 0.5 - x
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "Each slice along dim is positive and sums to 1.",
    look_at="along which dimension you sum, and what you divide by",
    needs="output_shape",
    cases=SIZES[:5],
)
def test_slices_sum_to_one(attempt, sizes):
    out = attempt.softmax(entries(sizes), sizes.dim)

    total = out.sum(dim=sizes.dim)
    assert_close(total, torch.ones_like(total), atol=1e-5, what="the sum along dim: sum", rows="row", columns="column")
    assert_holds(bool((out > 0).all()), "a result is not positive")


@claims(
    "Slices do not mix: changing one does not change the others.",
    look_at="whether a sum or a reshape reaches from one slice into another",
    needs="output_shape",
    cases=SMALL,
)
def test_slices_are_independent(attempt, sizes):
    x = entries(sizes)
    first = slices(sizes) == 0  # (B, T, N), 1 at dim

    before = attempt.softmax(x, sizes.dim)
    after = attempt.softmax(torch.where(first, randn(*x.shape), x), sizes.dim)

    what = "out of the other slices when the first changes (the first is shown as 0): out"
    assert_close(after * ~first, before * ~first, atol=1e-5, what=what, rows="row", columns="column")


@claims(
    "Every dim works, from the front and from the end.",
    look_at="whether dim is used everywhere, and what a negative one means to your code",
    needs="output_shape",
    cases=(Sizes(A=2, B=3, T=4, N=5), Sizes(A=2, B=2, T=2, N=2)),
)
def test_every_dim(attempt, reference, sizes):
    x = 1.5 * randn(sizes.A, sizes.B, sizes.T, sizes.N)
    for dim in range(-4, 4):
        out = attempt.softmax(x, dim)
        what = f"out with dim={dim}: out"
        assert_close(out, reference.softmax(x, dim), atol=1e-5, what=what, rows="row", columns="column")


@claims(
    "Any number of dimensions works, one included.",
    look_at="code that assumes a certain number of dimensions",
    needs="output_shape",
    cases=(Sizes(N=5, B=2), Sizes(N=4, B=3), Sizes(N=1, B=2)),
)
def test_any_number_of_dimensions(attempt, reference, sizes):
    for shape in ((sizes.N,), (sizes.B, sizes.N), (sizes.N, 3, 2, 1, sizes.B), (2, 1, 3, sizes.B, 1, sizes.N)):
        x = 1.5 * randn(*shape)
        for dim in (0, -1):
            out = attempt.softmax(x, dim)
            what = f"out of a {len(shape)}-dimensional x: out"
            assert_close(out, reference.softmax(x, dim), atol=1e-5, what=what, rows="row", columns="column")


# ----------------------------------------------------------------------------------------------- difficult entries


@claims(
    "Entries of about 1e4 and -1e4 give finite, right results.",
    look_at="exp of a large number, and any step that changes entries",
    needs="values",
    cases=SIZES[:3],
)
def test_large_entries(attempt, reference, sizes):
    x = quarters(sizes)
    up = torch.rand(x.shape) < 0.5
    up.select(sizes.dim, 0).fill_(True)  # one of each slice: distant_slices judges slices whose entries are all low
    up_and_down = torch.where(up, x + 1e4, x - 1e4)

    for where, large in (("near 1e4", x + 1e4), ("near -1e4", x - 1e4), ("near 1e4 and -1e4", up_and_down)):
        for dtype in (torch.float64, torch.float32):
            out = attempt.softmax(large.to(dtype), sizes.dim)
            # 2e-3, because the logarithm of a sum near 1e4 is rounded to 5e-4 in float32
            what = f"out of entries {where}: out"
            assert_close(out, reference.softmax(large, sizes.dim), atol=2e-3, what=what, rows="row", columns="column")


@claims(
    "Each slice is right, even if slices are very far apart.",
    look_at="whether each slice has its own number that you subtract",
    needs="values",
    cases=SIZES[:3],
)
def test_distant_slices(attempt, reference, sizes):
    for step in (100, 1000, 10000):
        x = quarters(sizes) + step * (slices(sizes) % 3 - 1)  # every slice at -step, 0 or step
        for dtype in (torch.float64, torch.float32):
            out = attempt.softmax(x.to(dtype), sizes.dim)
            what = f"out of slices {step} apart: out"
            assert_close(out, reference.softmax(x, sizes.dim), atol=2e-3, what=what, rows="row", columns="column")


@claims(
    "An entry of -inf gets exactly 0, and the rest of its slice sums to 1.",
    look_at="what happens to -inf in each step, and whether a very low finite entry is treated like -inf",
    needs="values",
    cases=SIZES[:4],
)
def test_neg_inf_entries(attempt, reference, sizes):
    hidden = some_hidden(sizes)
    for where in (0.0, -1e4, 1e4):
        x = (quarters(sizes) + where).masked_fill(hidden, -INF)
        out = attempt.softmax(x, sizes.dim)
        what = f"out of -inf beside entries near {where:.0f}: out"
        assert_close(out, reference.softmax(x, sizes.dim), atol=2e-3, what=what, rows="row", columns="column")
        zeros = torch.where(hidden, out, torch.zeros_like(out))
        what = "out where x is -inf (the rest is shown as 0): out"
        assert_close(zeros, torch.zeros_like(out), atol=0.0, what=what, rows="row", columns="column")


@claims(
    "A slice whose entries are all -inf gives 0 everywhere; the other slices stay right.",
    look_at="the maximum and the sum of such a slice",
    needs="values",
    cases=(*SIZES[:3], SIZES[7]),
)
def test_empty_slices(attempt, reference, sizes):
    odd = slices(sizes) % 2 == 1  # every other slice
    x = quarters(sizes)
    for empty in (odd, ~odd, torch.ones_like(odd)):
        masked = x.masked_fill(empty, -INF)
        for dtype in (torch.float64, torch.float32):
            out = attempt.softmax(masked.to(dtype), sizes.dim)
            what = "out when all entries of a slice are -inf: out"
            assert_close(out, reference.softmax(masked, sizes.dim), atol=1e-5, what=what, rows="row", columns="column")
            zeros = torch.where(empty, out, torch.zeros_like(out))
            assert_close(zeros, torch.zeros_like(out), atol=0.0, what=what, rows="row", columns="column")


# ------------------------------------------------------------------------------------------------ true of every kata


test_gradients = standard.gradients(softmax, calls=plain, needs="values", cases=SIZES[:5])


@claims(
    "The gradient is that of the definition at large entries and beside -inf too.",
    look_at="0 times infinity in the backward pass",
    needs=("gradients", "large_entries", "distant_slices", "neg_inf_entries"),
    cases=SMALL,
)
def test_gradients_of_difficult_entries(attempt, reference, sizes):
    x = quarters(sizes)
    hidden = some_hidden(sizes)
    apart = x + 1e4 * (slices(sizes) % 3 - 1)
    # 2e-3, as for the values
    for difficult in (apart, x.masked_fill(hidden, -INF), apart.masked_fill(hidden, -INF)):
        check_gradients(attempt.softmax, reference.softmax, difficult, sizes.dim, atol=2e-3)


test_output_dtype = standard.output_dtype(softmax, calls=difficult, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(softmax, needs="values", cases=(*SMALL, *SIZES[8:]), calls=plain)
test_inputs_unmodified = standard.inputs_unmodified(softmax, calls=difficult, needs="output_shape", cases=SMALL[:2])
test_non_contiguous_inputs = standard.non_contiguous_inputs(softmax, needs="values", cases=SMALL)
test_device = standard.device(softmax, calls=difficult, needs="output_shape", cases=SMALL[:1])


# --------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Where all entries of a slice are -inf, the gradient is finite; at the other slices it is right.",
    tier="edge",
    needs=("gradients", "empty_slices"),
    cases=SMALL,
    look_at="NaN in the backward pass, even where the forward pass replaces it",
)
def test_gradient_of_empty_slices(attempt, reference, sizes):
    empty = slices(sizes) % 2 == 1
    x = entries(sizes).masked_fill(empty, -INF)
    cotangent = randn(*x.shape)

    (gradient,) = attempt.softmax.run(x, sizes.dim, cotangent=cotangent).input_gradients
    (right,) = reference.softmax.run(x, sizes.dim, cotangent=cotangent).input_gradients

    finite = gradient is not None and bool(gradient.isfinite().all())
    assert_holds(finite, "the gradient is not finite where all entries of a slice are -inf")
    what = "the gradient at the other slices (the rest is shown as 0): grad"
    assert_close(gradient * ~empty, right * ~empty, atol=1e-5, what=what, rows="row", columns="column")


test_half_precision = standard.half_precision(
    softmax,
    claim="float16 and bfloat16 entries work, -inf included.",
    needs="values",
    cases=SMALL,
    terms=lambda sizes: sizes.N,
)
test_float64_throughout = standard.float64_throughout(
    softmax,
    look_at="conversions to float32 in any step, and constants added to the sum",
    calls=plain,
    needs="values",
    cases=SMALL,
)
test_own_memory = standard.own_memory(
    softmax,
    look_at="x, or a view of it, that is returned",
    calls=plain,
    needs="output_shape",
    cases=(SIZES[0], SIZES[7]),
)
