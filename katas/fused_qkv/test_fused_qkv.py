"""Hidden tests of fused_qkv: each tests one property of the contract in prompt.md."""

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
    Sizes(B=2, T=3, input_dim=5, output_dim=7),
    Sizes(B=3, T=4, input_dim=8, output_dim=6),
    Sizes(B=3, T=3, input_dim=5, output_dim=2),
    Sizes(B=2, T=5, input_dim=6, output_dim=6),
    Sizes(B=4, T=1, input_dim=3, output_dim=5),
    Sizes(B=1, T=6, input_dim=2, output_dim=3),
    Sizes(B=2, T=4, input_dim=1, output_dim=1),
    Sizes(B=2, T=150, input_dim=9, output_dim=5),
    Sizes(B=1, T=3, input_dim=66, output_dim=70),
)
EVERY = (*SIZES, Drawn(B=(1, 4), T=(1, 30), input_dim=(1, 24), output_dim=(1, 24)))
SMALL = SIZES[:2]
# The cost property recognises a product by its sizes. So input_dim and input_dim + 1 (a weight with its bias as one more
# column) differ from every other size and every product of two sizes, and input_dim is at least B * T + 3 * output_dim.
COUNTED = (
    Sizes(B=2, T=3, input_dim=23, output_dim=5),
    Sizes(B=2, T=4, input_dim=29, output_dim=6),
)


def pair(attempt, reference, sizes, dtype=torch.float64):
    """The attempt's module and the reference's, with the same random weights."""
    return build_pair(attempt, reference, "FusedQKVSelfAttention", sizes.input_dim, sizes.output_dim, dtype=dtype)


def tokens(sizes):
    """x (B, T, input_dim)."""
    return randn(sizes.B, sizes.T, sizes.input_dim)


module = standard.module(
    pair, lambda sizes: [(tokens(sizes),)], inputs="x", terms=lambda sizes: sizes.T * sizes.input_dim
)
test_from_scratch = standard.from_scratch(module, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[3], SIZES[7]))


@claims(
    "The parameters are qkv_proj.weight (3 * output_dim, input_dim) and qkv_proj.bias (3 * output_dim), and no others.",
    look_at="the layers made in __init__: their names, their sizes, their biases",
    cases=SMALL,
)
def test_parameters(attempt, reference, sizes):
    pair(attempt, reference, sizes)


@claims(
    "The output is one tensor of shape (B, T, output_dim).",
    look_at="which dimension the weights sum over",
    needs="parameters",
    cases=EVERY,
)
def test_output_shape(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)

    assert_shape(ours(tokens(sizes)), (sizes.B, sizes.T, sizes.output_dim))


@claims(
    "The output is softmax(q kᵀ / sqrt(output_dim)) v.",
    look_at="the order of q, k and v, the scale, and the dimension of the softmax",
    needs="output_shape",
    cases=EVERY,
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    for call in ("out", "out on a second call: out", "out after new weights were copied in: out"):
        x = tokens(sizes)
        if "second" in call:
            x[:, -1] = 0  # a zero token is a token too
        assert_close(ours(x), theirs(x), atol=1e-5, what=call)
        if "second" in call:
            weights = random_weights(theirs.parameters)
            ours.load(weights)
            theirs.load(weights)
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "The rows of qkv_proj are ordered q, k, v: output_dim rows for the queries, then the keys, then the values.",
    look_at="how the output of qkv_proj is cut into three",
    needs="output_shape",
    cases=SMALL,
)
def test_row_order(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)
    # If all scores are 0, or all keys are equal, the output is the mean of the values for any scale.
    for zero, what in ((slice(0, 2), "queries and keys"), (slice(1, 2), "keys")):
        weights = random_weights(theirs.parameters)
        weights["qkv_proj.weight"].view(3, sizes.output_dim, sizes.input_dim)[zero] = 0
        weights["qkv_proj.bias"].view(3, sizes.output_dim)[zero.start : 1] = 0  # the keys keep their bias
        ours.load(weights)
        theirs.load(weights)

        assert_close(ours(x), theirs(x), atol=1e-5, what=f"out when the rows of the {what} are 0: out")


@claims(
    "Each token's weights sum to 1: a feature in which all values are equal has that value in the output.",
    look_at="which dimension of the scores the softmax normalises",
    needs="output_shape",
    cases=SMALL,
)
def test_weights_sum_to_one(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    weights = random_weights(theirs.parameters)
    # The same rows for queries, keys and values, so that their order does not matter; the last feature is its bias.
    weight = weights["qkv_proj.weight"][: sizes.output_dim]
    weight[-1] = 0
    bias = weights["qkv_proj.bias"][: sizes.output_dim]
    bias[-1] = 2.0
    ours.load({"qkv_proj.weight": weight.repeat(3, 1), "qkv_proj.bias": bias.repeat(3)})

    feature = ours(tokens(sizes))[..., -1:]  # (B, T, 1)

    assert_close(
        feature, torch.full_like(feature, 2.0), atol=1e-5, what="the last feature of out, which is 2 in all values: out"
    )


@claims(
    "Samples do not mix: changing one does not change the others.",
    look_at="whether the softmax, a product or a reshape reaches across the batch",
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
    ours, _ = pair(attempt, reference, sizes)
    # Scores near 0, so that no weight is nearly 0, for any scale.
    x = tokens(sizes) / 4
    before = ours(x)
    for token in range(sizes.T):
        changed = x.clone()
        changed[:, token] = randn(sizes.B, sizes.input_dim) / 4
        moved = (ours(changed) - before).abs().amax(dim=-1) > 1e-9  # (B, T)

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
    module, claim="Gradients to x and to qkv_proj are those of the formula.", needs="values", cases=SIZES[:5]
)


@claims(
    "In one call exactly one matrix product reads qkv_proj.weight.",
    look_at="how many products use the weight, or a slice of it",
    needs="values",
    cases=COUNTED,
)
def test_one_product(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    recording = ours.run(tokens(sizes), record=True).recording
    # A product that reads the weight sums over input_dim, a size that nothing else here has.
    sums_over = {sizes.input_dim, sizes.input_dim + 1}
    reading = [
        operation
        for operation, operands in recording.products
        if operation != "aten::thnn_conv2d"  # another product runs inside it
        and any(sums_over & set(operand) for operand in operands)
    ]

    assert_holds(len(reading) > 0, "no matrix product reads qkv_proj.weight over the whole of input_dim")
    assert_holds(
        len(reading) == 1,
        f"{len(reading)} matrix products read qkv_proj.weight in one call, expected 1",
    )


test_train_and_eval_alike = standard.train_and_eval_alike(module, needs="output_shape", cases=SMALL[:1])
test_output_dtype = standard.output_dtype(module, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(module, needs="values", cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(module, needs="output_shape", cases=(SMALL[0], SIZES[3]))
test_non_contiguous_inputs = standard.non_contiguous_inputs(module, needs="values", cases=SMALL)
test_device = standard.device(module, needs="output_shape", cases=SMALL[:1])


@claims(
    "Scores of about 1e4 in float32 give finite, right results.",
    tier="edge",
    needs="values",
    cases=SMALL,
    look_at="exp of a large number",
)
def test_large_scores(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    weights = random_weights(theirs.parameters)
    # Integers for queries and keys, so that float32 scores are nearly exact; values as usual.
    weights["qkv_proj.weight"][: 2 * sizes.output_dim] = (20 * randn(2 * sizes.output_dim, sizes.input_dim)).round()
    weights["qkv_proj.bias"][: 2 * sizes.output_dim] = 0
    theirs.load({name: weight.float().double() for name, weight in weights.items()})
    ours.load({name: weight.float() for name, weight in weights.items()})
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
