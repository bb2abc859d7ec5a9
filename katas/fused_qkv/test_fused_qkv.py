"""Hidden tests of fused_qkv: what CONTRACT in kata.toml states, one property each."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
    build_pair,
    check_computes_in_dtype,
    check_from_scratch,
    check_gradients,
    check_keeps_dtype,
    check_leaves_inputs,
    check_own_memory,
    check_stays_on_device,
    check_takes_strided,
    claims,
    randn,
    random_weights,
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
)
SMALL = SIZES[:2]
# input_dim and input_dim + 1 (a weight with its bias as one more column) are no other size here, nor a product of two, and
# input_dim is no less than B * T + 3 * output_dim: all that one product can tell is what it is asked for.
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
    cases=SIZES,
)
def test_output_shape(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)

    assert_shape(ours(tokens(sizes)), (sizes.B, sizes.T, sizes.output_dim))


@claims(
    "The output is softmax(q kᵀ / sqrt(output_dim)) v.",
    look_at="the order of q, k and v, the scale, and the dimension of the softmax",
    needs="output_shape",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    for call in ("out", "out on a second call: out", "out after new weights were copied in: out"):
        x = tokens(sizes)
        if "second" in call:
            x[:, -1] = 0  # a token like any other
        assert_close(ours(x), theirs(x), atol=1e-5, what=call)
        if "second" in call:
            weights = random_weights(theirs.parameters)
            ours.load(weights)
            theirs.load(weights)


@claims(
    "The rows of qkv_proj are ordered q, k, v: output_dim rows for the queries, then the keys, then the values.",
    look_at="how the output of qkv_proj is cut into three",
    needs="output_shape",
    cases=SMALL,
)
def test_row_order(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)
    # Scores that are all 0 make the output the mean of the values, whatever the scale; so do keys that are all alike.
    for zero, what in ((slice(0, 2), "queries and keys"), (slice(1, 2), "keys")):
        weights = random_weights(theirs.parameters)
        weights["qkv_proj.weight"].view(3, sizes.output_dim, sizes.input_dim)[zero] = 0
        weights["qkv_proj.bias"].view(3, sizes.output_dim)[zero.start : 1] = 0  # the keys keep their bias
        ours.load(weights)
        theirs.load(weights)

        assert_close(ours(x), theirs(x), atol=1e-5, what=f"out when the rows of the {what} are 0: out")


@claims(
    "Each token's weights sum to 1: a feature in which all values are equal comes out as it went in.",
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
        feature, torch.full_like(feature, 2.0), atol=1e-5, what="the last feature of out where all values have 2: out"
    )


@claims(
    "Samples do not mix: changing one leaves the others as they were.",
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
    look_at="what keeps a token from a query",
    needs="output_shape",
    cases=SMALL,
)
def test_every_token_counts(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    # Scores near 0, so that every token keeps a weight that shows, whatever the scale.
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


@claims(
    "Gradients to x and to qkv_proj are those of the formula.",
    look_at="whether anything on the way is detached, rounded or rewritten in place",
    needs="values",
    cases=SIZES[:5],
)
def test_gradients(attempt, reference, sizes):
    check_gradients(*pair(attempt, reference, sizes), tokens(sizes))


@claims(
    "In one call exactly one matrix product reads qkv_proj.weight.",
    look_at="how often the weight, or a slice of it, is multiplied",
    needs="output_shape",
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


@claims(
    "train() and eval() give the same output.",
    look_at="dropout, or anything else that depends on the mode",
    needs="output_shape",
    cases=SMALL[:1],
)
def test_train_and_eval_alike(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    x = tokens(sizes)

    trained, evaluated = (ours.run(x, training=training).output for training in (True, False))

    assert_close(trained, evaluated, atol=1e-5, what="out in train(), against eval(): out")


@claims("The output's dtype is that of x, in float32 and float64.", needs="output_shape", cases=SMALL[:1],
        look_at="conversions on the way, and tensors made without a dtype")  # fmt: skip
def test_output_dtype(attempt, reference, sizes):
    for dtype in (torch.float32, torch.float64):
        ours, _ = pair(attempt, reference, sizes, dtype)
        check_keeps_dtype(ours, tokens(sizes), dtype=dtype)


@claims("float32 inputs give right values within float32's rounding.", needs="values", cases=SMALL,
        look_at="arithmetic in a narrower dtype than the inputs'")  # fmt: skip
def test_float32(attempt, reference, sizes):
    check_in_dtype(attempt, reference, sizes, torch.float32)


@claims("x is left as it was.", needs="output_shape", cases=(SMALL[0], SIZES[3]),
        look_at="in-place operations on the argument")  # fmt: skip
def test_inputs_unmodified(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)

    check_leaves_inputs(ours, tokens(sizes))


@claims("A non-contiguous x gives the same output.", needs="values", cases=SMALL,
        look_at="view on a tensor whose layout you do not know")  # fmt: skip
def test_non_contiguous_inputs(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)
    time_first = x.transpose(0, 1).contiguous().transpose(0, 1)  # (B, T, input_dim), stored (T, B, input_dim)

    check_takes_strided(ours, theirs, x)
    assert_close(ours(time_first), theirs(x), atol=1e-5, what="out of x stored time first: out")


@claims("Everything lies on the device of the inputs.", needs="output_shape", cases=SMALL[:1],
        look_at="tensors made without device=")  # fmt: skip
def test_device(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)

    check_stays_on_device(ours, tokens(sizes))


@claims("No ready-made attention is called.", blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[3], SIZES[7]),
        look_at="what the contract forbids")  # fmt: skip
def test_from_scratch(attempt, reference, sizes):
    for dtype, training in ((torch.float64, True), (torch.float32, False)):
        ours, _ = pair(attempt, reference, sizes, dtype)
        x = tokens(sizes).to(dtype)
        ours.run(x, training=training)  # it stays in this mode: in eval() a ready-made attention may take a faster way
        check_from_scratch(ours, x)


@claims("Scores of about 1e4 in float32 give finite, right results.", tier="edge", needs="values", cases=SMALL,
        look_at="exp of a large number")  # fmt: skip
def test_large_scores(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    weights = random_weights(theirs.parameters)
    # Integers for queries and keys, so that float32 scores are nearly exact; ordinary values.
    weights["qkv_proj.weight"][: 2 * sizes.output_dim] = (20 * randn(2 * sizes.output_dim, sizes.input_dim)).round()
    weights["qkv_proj.bias"][: 2 * sizes.output_dim] = 0
    theirs.load({name: weight.float().double() for name, weight in weights.items()})
    ours.load({name: weight.float() for name, weight in weights.items()})
    x = (3 * tokens(sizes)).round()

    assert_close(ours(x.float()), theirs(x), atol=2e-2)


@claims("float16 and bfloat16 inputs work.", tier="edge", needs="values", cases=SMALL,
        look_at="constants that the dtype cannot hold")  # fmt: skip
def test_half_precision(attempt, reference, sizes):
    for dtype in (torch.float16, torch.bfloat16):
        check_in_dtype(attempt, reference, sizes, dtype, spread=0.5)


@claims("float64 is kept throughout: exact to 1e-9.", tier="edge", needs="values", cases=SMALL,
        look_at="conversions to float32 on the way")  # fmt: skip
def test_float64_throughout(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)

    assert_close(ours(x), theirs(x), atol=1e-9)


@claims("The output shares no memory with x.", tier="edge", needs="output_shape", cases=(SIZES[0], SIZES[3], SIZES[4]),
        look_at="an input, or a view of one, that is returned")  # fmt: skip
def test_own_memory(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)

    check_own_memory(ours, tokens(sizes))


def check_in_dtype(attempt, reference, sizes, dtype, spread=1.0):
    """The attempt's module in `dtype` against the reference's in float64, both with the same rounded weights.

    With a smaller `spread` of x even float16 holds the exp of every score.
    """
    ours, theirs = pair(attempt, reference, sizes, dtype)
    weights = random_weights(theirs.parameters, dtype)
    ours.load(weights)
    theirs.load({name: weight.double() for name, weight in weights.items()})
    check_computes_in_dtype(ours, theirs, spread * tokens(sizes), dtype=dtype, terms=sizes.T * sizes.input_dim)
