"""Hidden tests of mla: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Drawn,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
    build_pair,
    check_raises_value_error,
    claims,
    randn,
    random_weights,
    standard,
)


def drawn(*, pairs, **sizes):
    return Sizes(**sizes, R=2 * pairs)


SIZES = (
    Sizes(B=2, H=3, T=4, E=11, D=5, L=7, R=2),
    Sizes(B=3, H=2, T=5, E=9, D=6, L=4, R=8),
    Sizes(B=2, H=3, T=4, E=12, D=4, L=9, R=6),
    Sizes(B=1, H=5, T=3, E=7, D=2, L=3, R=4),
    Sizes(B=2, H=1, T=4, E=6, D=3, L=5, R=2),
    Sizes(B=3, H=2, T=1, E=7, D=5, L=3, R=4),
    Sizes(B=2, H=3, T=4, E=5, D=1, L=7, R=2),
    Sizes(B=2, H=2, T=3, E=1, D=4, L=5, R=2),
    Sizes(B=2, H=3, T=5, E=8, D=4, L=1, R=6),
    Sizes(B=4, H=4, T=4, E=4, D=4, L=4, R=4),
    Sizes(B=1, H=2, T=3, E=9, D=67, L=5, R=66),
    Sizes(B=1, H=2, T=131, E=5, D=3, L=4, R=4),
    Drawn(drawn, B=(1, 3), H=(1, 4), T=(1, 30), E=(1, 30), D=(1, 30), L=(1, 30), pairs=(1, 12)),
)
SMALL = SIZES[:2]
TOLERANCE = 2e-5  # angles made in float32 are off by about 1e-5 at position 130


def pair(attempt, reference, sizes, dtype=torch.float64):
    """The attempt's module and the reference's, with the same random weights."""
    build = sizes.E, sizes.H, sizes.D, sizes.L, sizes.R
    return build_pair(attempt, reference, "LatentAttention", *build, dtype=dtype)


def shapes_of(sizes):
    rows = {
        "q_proj": (sizes.H * (sizes.D + sizes.R), sizes.E),
        "kv_down": (sizes.L, sizes.E),
        "k_up": (sizes.H * sizes.D, sizes.L),
        "v_up": (sizes.H * sizes.D, sizes.L),
        "k_rope": (sizes.R, sizes.E),
        "o_proj": (sizes.E, sizes.H * sizes.D),
    }
    return {f"{name}.weight": shape for name, shape in rows.items()}


def loaded(attempt, sizes, weights):
    return attempt.LatentAttention.loaded(weights, sizes.E, sizes.H, sizes.D, sizes.L, sizes.R)


def tokens(sizes):
    return randn(sizes.B, sizes.T, sizes.E)  # (B, T, E)


module = standard.module(
    pair,
    lambda sizes: [(tokens(sizes),)],
    inputs="x",
    terms=lambda sizes: 4 * sizes.T * (sizes.E + sizes.L + sizes.D + sizes.R),
    rows="token",
)
test_from_scratch = standard.from_scratch(module, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[11]))


# --------------------------------------------------------------------------------------------------- the module itself


@claims(
    "The parameters are the weights of q_proj, kv_down, k_up, v_up, k_rope and o_proj, and no others: no biases.",
    look_at="the names and sizes of the layers, and their biases",
    cases=(SIZES[0], SIZES[2]),
)
def test_parameters(attempt, reference, sizes):
    pair(attempt, reference, sizes)


@claims(
    "An odd rope_dim raises ValueError. A num_heads that does not divide embed_dim does not.",
    look_at="what the constructor does with the sizes",
    cases=(Sizes(E=8, H=2, D=4, L=3, R=3), Sizes(E=8, H=2, D=3, L=3, R=1)),
)
def test_odd_rope_dim(attempt, sizes):
    build = sizes.E, sizes.H, sizes.D, sizes.L, sizes.R
    check_raises_value_error(
        lambda: attempt.LatentAttention(*build)(randn(2, 3, sizes.E).float()), f"LatentAttention{build}"
    )


@claims(
    "The output is one tensor of shape (B, T, E).",
    look_at="the sizes of content, rotary part and latent, and how the heads are merged",
    needs="parameters",
    cases=SIZES[:11],
)
def test_output_shape(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)

    assert_shape(ours(tokens(sizes)), (sizes.B, sizes.T, sizes.E))


test_train_and_eval_alike = standard.train_and_eval_alike(module, needs="output_shape", cases=SMALL[:1])


# ------------------------------------------------------------------------------------------------------- the values


@claims(
    "The output is o_proj of the heads' causal softmax((q_c·k_c + q_r·k_r) / sqrt(D + R)) v, side by side.",
    look_at="the parts of queries and keys, the rotation, the scale, the mask, and where values come from",
    needs="train_and_eval_alike",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    for size in (1.0, 1.0, 2.0):  # a second call must be right too; then with stronger scores
        x = size * tokens(sizes)

        assert_close(ours(x), theirs(x), atol=TOLERANCE * size**2, rows="token")


@claims(
    "Without the rotary parts, positions do not matter: the last token's output stays, if the earlier ones are exchanged.",
    look_at="what the rotation acts on",
    needs="train_and_eval_alike",
    cases=(SIZES[0], SIZES[2]),
)
def test_content_has_no_position(attempt, sizes):
    weights = random_weights(shapes_of(sizes))
    weights["k_rope.weight"] = 0 * weights["k_rope.weight"]
    module = loaded(attempt, sizes, weights)
    x = tokens(sizes)
    exchanged = torch.cat([x[:, :-1].flip(1), x[:, -1:]], dim=1)
    before, after = module(x)[:, -1], module(exchanged)[:, -1]

    assert_close(
        after, before, atol=1e-5, what="out[:, -1] when the tokens before it are exchanged, with k_rope at 0: out"
    )


@claims(
    "The rotary parts tell positions apart: the last token's output changes, if the earlier ones are exchanged.",
    look_at="whether the rotary parts reach the scores, and turn",
    needs="train_and_eval_alike",
    cases=(SIZES[0], SIZES[2]),
)
def test_order_matters(attempt, sizes):
    module = loaded(attempt, sizes, random_weights(shapes_of(sizes)))
    x = tokens(sizes)
    exchanged = torch.cat([x[:, :-1].flip(1), x[:, -1:]], dim=1)
    moved = (module(exchanged)[:, -1] - module(x)[:, -1]).abs().amax()

    assert_holds(bool(moved > 1e-3), "out[:, -1] stays the same when the tokens before it are exchanged")


@claims(
    "A token's output does not depend on later tokens.",
    look_at="which side of the diagonal is hidden",
    needs="train_and_eval_alike",
    cases=SMALL[:1],
)
def test_causal(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    x = tokens(sizes)
    before = ours(x)
    for place in range(1, sizes.T):
        changed = x.clone()
        changed[:, place] = randn(sizes.B, sizes.E)
        what = f"out[:, :{place}] when token {place} changes: out"

        assert_close(ours(changed)[:, :place], before[:, :place], atol=1e-5, what=what, rows="token")


@claims(
    "Head h owns its columns of q_proj, k_up and v_up, and all heads share the rotary key.",
    look_at="the order of head, content and rotary part in the columns",
    needs="train_and_eval_alike",
    cases=(SIZES[0], SIZES[2]),
)
def test_heads_own_columns(attempt, sizes):
    width = sizes.H * sizes.D
    weights = random_weights(shapes_of(sizes))
    x = tokens(sizes)
    one_head_out = torch.zeros(sizes.E, width, dtype=torch.float64)
    one_head_out[: min(sizes.E, sizes.D), : min(sizes.E, sizes.D)] = torch.eye(min(sizes.E, sizes.D))
    weights["o_proj.weight"] = one_head_out  # the columns of head 0 alone reach the output
    before = loaded(attempt, sizes, weights)(x)
    for name, size in (("q_proj.weight", sizes.D + sizes.R), ("k_up.weight", sizes.D), ("v_up.weight", sizes.D)):
        changed = {**weights, name: weights[name].clone()}
        changed[name][size:] += 0.7  # the rows of all other heads
        what = f"columns of head 0, when rows of the other heads in {name} change: out"

        assert_close(loaded(attempt, sizes, changed)(x), before, atol=1e-5, what=what, rows="token")
    moved = loaded(attempt, sizes, {**weights, "k_rope.weight": weights["k_rope.weight"] + 0.7})(x) - before
    assert_holds(bool(moved.abs().amax() > 1e-3), "changing k_rope does not change head 0")


@claims(
    "Samples do not mix, and one module takes any batch size and any length, call after call.",
    look_at="whether a reshape or the softmax reaches across the batch, and what the module stores",
    needs="values",
    cases=SMALL[:1],
)
def test_sizes_may_change(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)

    for B, T in ((sizes.B, sizes.T), (sizes.B, sizes.T + 3), (sizes.B + 2, 2), (1, 1), (sizes.B, sizes.T)):
        x = randn(B, T, sizes.E)
        assert_close(ours(x), theirs(x), atol=TOLERANCE, what=f"out for B={B}, T={T}: out", rows="token")


# ---------------------------------------------------------------------------------------------- true of every kata, core


test_gradients = standard.gradients(
    module,
    claim="Gradients to x and to every parameter are those of the definition.",
    needs="values",
    cases=(*SMALL, SIZES[3]),
)
test_output_dtype = standard.output_dtype(module, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(module, needs="values", cases=SMALL[:1])
test_inputs_unmodified = standard.inputs_unmodified(module, needs="output_shape", cases=SMALL[:1])
test_non_contiguous_inputs = standard.non_contiguous_inputs(module, needs="values", cases=SMALL[:1])
test_device = standard.device(module, needs="output_shape", cases=SMALL[:1])


# ---------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Scores of about 1e4 in float32 give finite, right results.",
    tier="edge",
    needs="values",
    cases=SMALL[:1],
    look_at="exp of a large number, and what a masked score becomes",
)
def test_large_scores(attempt, reference, sizes):
    weights = random_weights(shapes_of(sizes), torch.float32)
    weights["q_proj.weight"], weights["k_up.weight"] = 64 * weights["q_proj.weight"], 64 * weights["k_up.weight"]
    exact = {name: weight.double() for name, weight in weights.items()}
    x = tokens(sizes).float()
    out = loaded(attempt, sizes, weights)(x)

    assert_close(out, loaded(reference, sizes, exact)(x.double()), atol=2e-2, rows="token")


test_half_precision = standard.half_precision(module, needs="values", cases=SMALL[:1])
test_float64_throughout = standard.float64_throughout(module, needs="values", cases=SMALL[:1])
test_own_memory = standard.own_memory(module, needs="output_shape", cases=(SIZES[0], SIZES[5]))
