"""Hidden tests of rope: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Drawn,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
    check_raises_value_error,
    claims,
    randn,
    standard,
    strided,
)


def drawn(*, pairs, places, **sizes):
    return Sizes(**sizes, D=2 * pairs, positions=("in order", "any", "by sample")[places])


SIZES = (
    Sizes(B=2, H=3, T=4, D=2, Dv=5, positions="in order"),
    Sizes(B=3, H=2, T=5, D=6, Dv=4, positions="any"),
    Sizes(B=2, H=3, T=5, D=8, Dv=7, positions="by sample"),
    Sizes(B=3, H=3, T=3, D=4, Dv=3, positions="by sample"),
    Sizes(B=4, H=2, T=1, D=6, Dv=5, positions="by sample"),
    Sizes(B=1, H=4, T=6, D=10, Dv=1, positions="any"),
    Sizes(B=5, H=1, T=3, D=4, Dv=2, positions="by sample"),
    Sizes(B=1, H=2, T=3, D=70, Dv=66, positions="any"),
    Sizes(B=2, H=2, T=131, D=18, Dv=3, positions="in order"),
    Drawn(drawn, B=(1, 4), H=(1, 4), T=(1, 40), pairs=(1, 45), Dv=(1, 90), places=(0, 2)),
)
SMALL = SIZES[1:3]  # the same positions for all samples, then positions by sample


def positions_of(sizes, below=40, dtype=torch.int64):
    """(T,) or (B, T), as the case says: in order, any, or by sample. Never those of the tokens' order, but in order."""
    if sizes.positions == "in order":
        return torch.arange(sizes.T, dtype=dtype)
    shape = (sizes.B, sizes.T) if sizes.positions == "by sample" else (sizes.T,)
    return torch.randint(1, below, shape).to(dtype)


def tensor(sizes):
    return randn(sizes.B, sizes.H, sizes.T, sizes.D)  # (B, H, T, D)


def qkv(sizes):
    return tensor(sizes), tensor(sizes), randn(sizes.B, sizes.H, sizes.T, sizes.Dv)


def tolerance(positions):
    """1e-5 plus 1e-6 times the largest position: angles made in float32 are right."""
    return 1e-5 + 1e-6 * float(positions.max())


rotation = standard.function(
    "apply_rope",
    lambda sizes: [(tensor(sizes), positions_of(sizes)), (tensor(sizes), positions_of(sizes), 300.0)],
    inputs="x and positions",
    terms=lambda sizes: 40,
    rows="token",
)
attention = standard.function(
    "rope_attention",
    lambda sizes: [(*qkv(sizes), positions_of(sizes))],
    inputs="q, k, v and positions",
    terms=lambda sizes: 40 + sizes.T * sizes.D,
)
test_from_scratch = standard.from_scratch(
    rotation, attention, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[2], SIZES[8])
)


@claims(
    "An odd D raises ValueError, in both functions.",
    look_at="what each function does with the last size of its inputs before all else",
    cases=(Sizes(D=3), Sizes(D=1), Sizes(D=7)),
)
def test_odd_size(attempt, sizes):
    x, positions = randn(2, 3, 4, sizes.D), torch.arange(4)

    check_raises_value_error(lambda: attempt.apply_rope(x, positions), f"apply_rope with D={sizes.D}")
    check_raises_value_error(lambda: attempt.rope_attention(x, x, x, positions), f"rope_attention with D={sizes.D}")


# ---------------------------------------------------------------------------------------------------- apply_rope


@claims(
    "apply_rope gives one tensor of shape (B, H, T, D), for positions (T,) and (B, T).",
    look_at="how the angles broadcast over samples and heads",
    cases=SIZES,
)
def test_rotated_shape(attempt, sizes):
    x = tensor(sizes)

    assert_shape(attempt.apply_rope(x, positions_of(sizes)), tuple(x.shape))


@claims(
    "At position 0 nothing is turned.",
    look_at="what the angles are at position 0, and whether positions are used at all",
    needs="rotated_shape",
    cases=SMALL,
)
def test_position_zero(attempt, sizes):
    x = tensor(sizes)
    still = attempt.apply_rope(x, 0 * positions_of(sizes))

    assert_close(still, x, atol=1e-5, what="x turned at position 0: out", rows="token")


@claims(
    "Each pair of columns 2i and 2i + 1 keeps its length, and turns without regard to the other pairs.",
    look_at="which columns form a pair, and where the two results go",
    needs="rotated_shape",
    cases=(SIZES[1], SIZES[3]),
)
def test_pairs(attempt, sizes):
    x, positions = tensor(sizes), positions_of(sizes)
    for pair in range(sizes.D // 2):
        own = torch.arange(sizes.D) // 2 == pair  # (D,)
        turned = attempt.apply_rope(x * own, positions)
        what = f"of a tensor that is 0 but in columns {2 * pair} and {2 * pair + 1}: out[..., other columns]"

        assert_close(turned[..., ~own], 0 * turned[..., ~own], atol=1e-5, what=what, rows="token")
        length = (x * own).norm(dim=-1)
        assert_close(turned.norm(dim=-1), length, atol=1e-5, what=f"the length of pair {pair}: length", columns="token")


@claims(
    "Pair i turns by position * base ** (-2i / D), from (x0, x1) to (x0 cos - x1 sin, x0 sin + x1 cos).",
    look_at="the frequencies, the positions, the direction, and which columns form a pair",
    needs="rotated_shape",
    cases=SIZES,
)
def test_rotation(attempt, reference, sizes):
    x, positions = tensor(sizes), positions_of(sizes)
    for more in ((), (500.0,), (500000.0,), ()):  # the base; a second call without it must be right too
        right = reference.apply_rope(x, positions, *more)
        what = f"out with base={more[0]}: out" if more else "out"

        assert_close(attempt.apply_rope(x, positions, *more), right, atol=tolerance(positions), what=what, rows="token")


@claims(
    "Positions may be int32 or int64, in any order, and far beyond the length of x.",
    look_at="tables of a fixed length, and arithmetic with the positions",
    needs="rotation",
    cases=SMALL,
)
def test_any_positions(attempt, reference, sizes):
    x = tensor(sizes)
    for below, atol in ((2000, 2e-3), (10_000, 2e-2)):
        for dtype in (torch.int32, torch.int64):
            positions = positions_of(sizes, below=below, dtype=dtype)
            positions[..., -1] = below - 1
            right = reference.apply_rope(x, positions)
            what = f"out at positions up to {below - 1}, {str(dtype).removeprefix('torch.')}: out"

            assert_close(attempt.apply_rope(x, positions), right, atol=atol, what=what, rows="token")


# ------------------------------------------------------------------------------------------------ rope_attention


@claims(
    "rope_attention gives one tensor of shape (B, H, T, Dv).",
    look_at="which dimension the weights sum over",
    cases=SIZES,
)
def test_output_shape(attempt, sizes):
    out = attempt.rope_attention(*qkv(sizes), positions_of(sizes))

    assert_shape(out, (sizes.B, sizes.H, sizes.T, sizes.Dv))


@claims(
    "The output is softmax(q kᵀ / sqrt(D)) v, with q and k turned by the positions.",
    look_at="what is turned, the scale, and the dimension of the softmax",
    needs="output_shape",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    for what in ("out", "out on a second call: out"):
        q, k, v = qkv(sizes)
        positions = positions_of(sizes)
        right = reference.rope_attention(q, k, v, positions)

        assert_close(attempt.rope_attention(q, k, v, positions), right, atol=tolerance(positions), what=what)


@claims(
    "An offset on all positions changes nothing, and other differences between them do.",
    look_at="whether q and k are turned by the same angles in the same direction, and whether positions are used",
    needs="output_shape",
    cases=SMALL,
)
def test_only_differences_count(attempt, sizes):
    q, k, v = qkv(sizes)
    positions = positions_of(sizes)
    out = attempt.rope_attention(q, k, v, positions)
    for offset in (3, 1000):
        moved = attempt.rope_attention(q, k, v, positions + offset)
        assert_close(moved, out, atol=2e-3, what=f"out when {offset} is added to all positions: out")
    stretched = attempt.rope_attention(q, k, v, 3 * positions)

    assert_holds(bool((stretched - out).abs().amax() > 1e-2), "out stays the same when all positions are tripled")


@claims(
    "Samples and heads do not mix: changing one does not change the others.",
    look_at="whether a reshape, the angles or the softmax reach across the batch or the heads",
    needs="output_shape",
    cases=SMALL,
)
def test_samples_and_heads_are_independent(attempt, sizes):
    q, k, v = qkv(sizes)
    positions = positions_of(sizes)
    before = attempt.rope_attention(q, k, v, positions)
    for place, rest in (((0,), (slice(1, None),)), ((slice(None), 0), (slice(None), slice(1, None)))):
        changed = [part.clone() for part in (q, k, v)]
        for part in changed:
            part[place] = randn(*part[place].shape)
        after = attempt.rope_attention(*changed, positions)

        what = "out of the others when one sample or head changes: out"
        assert_close(after[rest], before[rest], atol=1e-5, what=what)


# ------------------------------------------------------------------------------------------- true of both functions


@claims(
    "Gradients to x, q, k and v are those of the definition.",
    look_at="whether any step is detached, rounded or done in place",
    needs=("rotation", "values"),
    cases=(*SIZES[:4], SIZES[5]),
)
def test_gradients(attempt, reference, sizes):
    positions = positions_of(sizes)
    for name, args in (("apply_rope", (tensor(sizes),)), ("rope_attention", qkv(sizes))):
        ours, theirs = getattr(attempt, name), getattr(reference, name)
        cotangent = randn(*args[-1].shape)
        got = ours.run(*args, positions, cotangent=cotangent).input_gradients
        right = theirs.run(*args, positions, cotangent=cotangent).input_gradients
        for place, (mine, wanted) in enumerate(zip(got, right, strict=True), start=1):
            assert_holds(mine is not None, f"no gradient reaches argument {place} of {name}")
            what = f"the gradient of argument {place} of {name}: grad"
            assert_close(mine, wanted, atol=tolerance(positions), what=what, rows="token", columns="column")


test_output_dtype = standard.output_dtype(rotation, attention, needs=("rotated_shape", "output_shape"), cases=SMALL)
test_float32 = standard.float32(rotation, attention, needs=("rotation", "values"), cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(
    rotation, attention, needs=("rotated_shape", "output_shape"), cases=SMALL
)
test_device = standard.device(rotation, attention, needs=("rotated_shape", "output_shape"), cases=SMALL)


@claims(
    "The output does not depend on the memory layout of the inputs.",
    look_at="view on a tensor whose layout you do not know",
    needs=("rotation", "values"),
    cases=SMALL,
)
def test_non_contiguous_inputs(attempt, reference, sizes):
    def tokens_first(part):
        return part.transpose(1, 2).contiguous().transpose(1, 2)

    def with_gaps(part):
        return torch.stack([part, part], dim=2)[:, :, 0]

    def one_for_all(part):
        return part[:1, :1].expand(part.shape)

    positions = positions_of(sizes)
    for how, change in (
        ("stored as a split leaves it", tokens_first),
        ("with gaps", with_gaps),
        ("expanded", one_for_all),
    ):
        parts = [change(part) for part in qkv(sizes)]
        whole = [part.contiguous() for part in parts]
        for name, args, right in (
            ("apply_rope", parts[:1], whole[:1]),
            ("rope_attention", parts, whole),
        ):
            expected = getattr(reference, name)(*right, positions)
            out = getattr(attempt, name)(*args, strided(positions))
            assert_close(out, expected, atol=tolerance(positions), what=f"out of {name} of inputs {how}: out")


# ---------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "The last dimension of x may be strided.",
    tier="edge",
    look_at="view_as_complex",
    needs="rotation",
    cases=SMALL,
)
def test_strided_last_dimension(attempt, reference, sizes):
    x, positions = tensor(sizes), positions_of(sizes)
    right = reference.apply_rope(x, positions)

    assert_close(attempt.apply_rope(strided(x), positions), right, atol=tolerance(positions), rows="token")


@claims(
    "In bfloat16, positions up to 100,000 are turned right.",
    tier="edge",
    look_at="the dtype of positions and angles: bfloat16 holds no odd number above 256",
    needs="rotation",
    cases=SMALL,
)
def test_far_positions_in_bfloat16(attempt, reference, sizes):
    x, positions = tensor(sizes).bfloat16(), positions_of(sizes, below=100_000)
    out = attempt.apply_rope(x, positions)

    assert_close(out, reference.apply_rope(x.double(), positions), atol=0.06, rows="token")


@claims(
    "Scores of about 1e4 in float32 give finite, right results.",
    tier="edge",
    needs="values",
    cases=SMALL,
    look_at="exp of a large number",
)
def test_large_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    q, k = (q * 100).round(), (k * 100).round()
    still = 0 * positions_of(sizes)  # at position 0 the turn keeps integers
    out = attempt.rope_attention(q.float(), k.float(), v.float(), still)

    assert_close(out, reference.rope_attention(q, k, v, still), atol=1e-2)


test_half_precision = standard.half_precision(rotation, attention, needs=("rotation", "values"), cases=SMALL)
test_float64_throughout = standard.float64_throughout(rotation, attention, needs=("rotation", "values"), cases=SMALL)
test_own_memory = standard.own_memory(
    rotation, attention, needs=("rotated_shape", "output_shape"), cases=(SIZES[0], SIZES[4])
)
