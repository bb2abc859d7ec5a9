"""Hidden tests of heads_concat: each tests one property of the contract in prompt.md."""

import math

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Drawn,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
    build_pair,
    claims,
    randn,
    random_weights,
    standard,
)

SIZES = (
    Sizes(B=3, T=4, input_dim=5, key_dim=7, value_dim=6, H=2),
    Sizes(B=2, T=5, input_dim=8, key_dim=6, value_dim=2, H=3),
    Sizes(B=3, T=3, input_dim=5, key_dim=2, value_dim=7, H=3),
    Sizes(B=2, T=5, input_dim=12, key_dim=6, value_dim=6, H=2),
    Sizes(B=4, T=1, input_dim=3, key_dim=5, value_dim=2, H=3),
    Sizes(B=1, T=6, input_dim=2, key_dim=3, value_dim=5, H=4),
    Sizes(B=2, T=4, input_dim=3, key_dim=1, value_dim=1, H=5),
    Sizes(B=2, T=4, input_dim=7, key_dim=5, value_dim=3, H=1),
    Sizes(B=2, T=150, input_dim=9, key_dim=5, value_dim=3, H=2),
    Sizes(B=2, T=4, input_dim=1, key_dim=5, value_dim=3, H=2),
    Sizes(B=1, T=3, input_dim=66, key_dim=70, value_dim=68, H=2),
)
EVERY = (*SIZES, Drawn(B=(1, 4), T=(1, 30), input_dim=(1, 24), key_dim=(1, 24), value_dim=(1, 24), H=(1, 4)))
SMALL = SIZES[:2]


def pair(attempt, reference, sizes, dtype=torch.float64):
    """The attempt's module and the reference's, with the same random weights."""
    build = sizes.input_dim, sizes.key_dim, sizes.value_dim, sizes.H
    return build_pair(attempt, reference, "MultiHeadAttentionWrapper", *build, dtype=dtype)


def tokens(sizes, *lead):
    """x (*lead, T, input_dim); the leading dimension is B unless given."""
    return randn(*(lead or (sizes.B,)), sizes.T, sizes.input_dim)


module = standard.module(
    pair, lambda sizes: [(tokens(sizes),)], inputs="x", terms=lambda sizes: sizes.T * sizes.input_dim
)
test_from_scratch = standard.from_scratch(module, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[3], SIZES[8]))


@claims(
    "The parameters are the weights of q_proj, k_proj and v_proj of heads.0, heads.1, … and no others: no biases.",
    look_at="how the heads are stored, and the names of a head's layers",
    cases=(*SMALL, SIZES[7]),
)
def test_parameters(attempt, reference, sizes):
    pair(attempt, reference, sizes)


@claims(
    "The output is one tensor of shape (..., T, H * value_dim).",
    look_at="where the heads are combined, and the use of each projection",
    needs="parameters",
    cases=SIZES[:6],
)
def test_output_shape(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)

    assert_shape(ours(tokens(sizes)), (sizes.B, sizes.T, sizes.H * sizes.value_dim))


@claims(
    "The output is softmax(q kᵀ / sqrt(key_dim)) v of each head, side by side in order.",
    look_at="the scale, the dimension of the softmax, and the use of each projection",
    needs="output_shape",
    cases=EVERY,
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    for call in ("out", "out on a second call: out", "out after new weights were copied in: out"):
        x = tokens(sizes)
        assert_close(ours(x), theirs(x), atol=1e-5, what=call)
        if "second" in call:
            weights = random_weights(theirs.parameters)
            ours.load(weights)
            theirs.load(weights)
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "Columns i*value_dim to (i+1)*value_dim of the output are head i's, and depend on no other head.",
    look_at="the order of the heads, where they are combined, and whether each has its own weights",
    needs="output_shape",
    cases=SIZES[:3],
)
def test_head_owns_its_columns(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)
    weights = random_weights(theirs.parameters)
    ours.load(weights)
    before = ours(x)
    for head in (0, sizes.H - 1):
        own = torch.arange(sizes.H * sizes.value_dim) // sizes.value_dim == head  # (H * value_dim,)
        changed = dict(weights)
        for name in ("q_proj", "k_proj", "v_proj"):
            changed[f"heads.{head}.{name}.weight"] = randn(*weights[f"heads.{head}.{name}.weight"].shape)
        ours.load(changed)
        after = ours(x)
        what = f"the columns of the other heads (the rest is shown as 0), when the weights of head {head} change: out"

        assert_close(after * ~own, before * ~own, atol=1e-5, what=what)
        first = head * sizes.value_dim
        assert_holds(
            not torch.allclose(after[..., own], before[..., own], atol=1e-5, rtol=0.0),
            f"columns {first} to {first + sizes.value_dim} do not change when the weights of head {head} change",
        )


@claims(
    "The output equals that of the fused form: stack the heads' weights in one projection, split into heads, merge.",
    look_at="what a head does that the fused form does not do",
    needs="output_shape",
    cases=SIZES[:4],
)
def test_equals_fused_form(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    weights = random_weights(theirs.parameters)
    ours.load(weights)
    x = tokens(sizes)
    q, k, v = (
        # One product for all heads: (B, T, H * size), its columns then cut into (B, H, T, size).
        (x @ torch.cat([weights[f"heads.{i}.{name}.weight"] for i in range(sizes.H)]).T)
        .unflatten(-1, (sizes.H, -1))
        .transpose(1, 2)
        for name in ("q_proj", "k_proj", "v_proj")
    )
    scores = q @ k.transpose(-2, -1) / math.sqrt(sizes.key_dim)  # (B, H, T, T)
    fused = (scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(-2)  # (B, T, H * value_dim)

    assert_close(ours(x), fused, atol=1e-5, what="out, against the fused form: out")


@claims(
    "Any number of leading dimensions works, including none.",
    look_at="code that assumes a certain number of dimensions",
    needs="values",
    cases=SMALL,
)
def test_any_leading_dimensions(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    for x in (tokens(sizes)[0], tokens(sizes, sizes.B, 2), tokens(sizes, 2, 1, sizes.B)):
        what = f"out of a {x.dim()}-dimensional x: out"
        assert_close(ours(x), theirs(x), atol=1e-5, what=what)


@claims(
    "Each token's weights sum to 1: if the values of all tokens are equal, the output is that value.",
    look_at="which dimension of the scores the softmax normalises",
    needs="output_shape",
    cases=SMALL,
)
def test_weights_sum_to_one(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    weights = random_weights(theirs.parameters)
    # All heads have equal values: they read the first feature only, and it is 2 for every token.
    value = weights["heads.0.v_proj.weight"]
    value[:, 1:] = 0
    ours.load({name: value if name.endswith("v_proj.weight") else weight for name, weight in weights.items()})
    x = tokens(sizes)
    x[..., 0] = 2.0

    out = ours(x)

    expected = 2.0 * value[:, 0].repeat(sizes.H)  # (H * value_dim,)
    assert_close(out, expected.expand_as(out), atol=1e-5, what="out when all values are equal: out")


@claims(
    "Samples do not mix: changing one does not change the others.",
    look_at="whether the softmax, a product or a reshape reaches across leading dimensions",
    needs="output_shape",
    cases=SMALL,
)
def test_samples_are_independent(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    x = tokens(sizes)
    changed = x.clone()
    changed[0] = randn(*x[0].shape)

    before, after = ours(x), ours(changed)

    assert_close(after[1:], before[1:], atol=1e-5, what="out of the others when the first sample changes: out")


@claims(
    "Every token's output depends on every token of its sequence: there is no mask.",
    look_at="what hides a token from a query",
    needs="output_shape",
    cases=SMALL,
)
def test_every_token_counts(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    weights = random_weights(theirs.parameters)
    # Scores near 0, so that no weight is nearly 0, for any scale.
    ours.load({name: weight if "v_proj" in name else 0.2 * weight for name, weight in weights.items()})
    x = tokens(sizes)
    before = ours(x)
    for token in range(sizes.T):
        changed = x.clone()
        changed[:, token] = randn(sizes.B, sizes.input_dim)
        moved = (ours(changed) - before).abs().amax(dim=-1) > 1e-9  # (B, T); NaN counts as not moved

        if not bool(moved.all()):
            sample, query = (int(i) for i in (~moved).nonzero()[0])
            assert_holds(False, f"out[{sample}, {query}] stays as it was when token {token} of its sequence changes")


@claims(
    "Tokens in another order give the same outputs in that order.",
    look_at="whether anything depends on a token's position",
    needs="output_shape",
    cases=SMALL,
)
def test_token_order(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    x = tokens(sizes)
    order = torch.arange(sizes.T).roll(1)  # (T,)

    assert_close(ours(x[:, order]), ours(x)[:, order], atol=1e-5, what="out of the tokens in another order: out")


test_gradients = standard.gradients(
    module,
    claim="Gradients to x and to every weight are those of the formula.",
    needs="values",
    cases=(*SIZES[:2], SIZES[4]),
)
test_train_and_eval_alike = standard.train_and_eval_alike(module, needs="output_shape", cases=SMALL[:1])
test_output_dtype = standard.output_dtype(module, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(module, needs="values", cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(module, needs="output_shape", cases=(SMALL[0], SIZES[3]))
test_non_contiguous_inputs = standard.non_contiguous_inputs(module, needs="values", cases=SMALL)
test_device = standard.device(module, needs="output_shape", cases=SMALL[:1])


# --------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Scores of about 1e4 in float32 give finite, right results.",
    tier="edge",
    needs="values",
    cases=SMALL,
    look_at="exp of a large number",
)
def test_large_scores(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    weights = random_weights(theirs.parameters, torch.float32)
    for name, weight in weights.items():
        if "v_proj" not in name:
            # Integers for queries and keys, so that float32 scores are nearly exact; values as usual.
            weights[name] = (20 * randn(*weight.shape)).round().float()
    theirs.load({name: weight.double() for name, weight in weights.items()})
    ours.load(weights)
    x = (3 * tokens(sizes)).round()

    assert_close(ours(x.float()), theirs(x), atol=2e-2)


test_half_precision = standard.half_precision(
    module,
    calls=lambda sizes: [(tokens(sizes) / 2,)],  # so that float16 holds the exp of every score
    needs="values",
    cases=SMALL,
)
test_float64_throughout = standard.float64_throughout(module, needs="values", cases=SMALL)
test_own_memory = standard.own_memory(module, needs="output_shape", cases=(SIZES[0], SIZES[3], SIZES[4]))
