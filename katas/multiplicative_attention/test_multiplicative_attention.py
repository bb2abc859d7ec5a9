"""Hidden tests of multiplicative_attention: what the contract in kata.toml states, one property each."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
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
)

SIZES = (
    Sizes(B=2, Tq=3, Tk=5, query_dim=7, key_dim=6, Dv=4),
    Sizes(B=3, Tq=6, Tk=4, query_dim=5, key_dim=8, Dv=7),
    Sizes(B=2, Tq=1, Tk=3, query_dim=6, key_dim=5, Dv=1),
    Sizes(B=4, Tq=3, Tk=1, query_dim=5, key_dim=2, Dv=6),
    Sizes(B=2, Tq=4, Tk=3, query_dim=1, key_dim=6, Dv=5),
    Sizes(B=2, Tq=4, Tk=3, query_dim=6, key_dim=1, Dv=5),
    Sizes(B=1, Tq=3, Tk=150, query_dim=9, key_dim=4, Dv=5),
    Sizes(B=3, Tq=131, Tk=8, query_dim=4, key_dim=7, Dv=2),
)
SMALL = SIZES[:2]
KEPT = tuple(sizes for sizes in SIZES if sizes.Tk > 1)
# Sizes that could be taken for one another.
ALIKE = (
    Sizes(B=2, Tq=4, Tk=4, query_dim=5, key_dim=5, Dv=5),
    Sizes(B=3, Tq=3, Tk=3, query_dim=3, key_dim=3, Dv=3),
)
# B equal to one of the lengths, then to both.
EQUAL = (
    Sizes(B=3, Tq=3, Tk=5, query_dim=4, key_dim=6, Dv=2),
    Sizes(B=5, Tq=3, Tk=5, query_dim=4, key_dim=6, Dv=2),
    Sizes(B=4, Tq=4, Tk=4, query_dim=3, key_dim=6, Dv=2),
)


def weight(sizes, dtype=torch.float64):
    """A k_proj whose scores are about 1: softmax rows neither flat nor with nearly all weight on one key."""
    return {
        "k_proj.weight": randn(sizes.query_dim, sizes.key_dim, dtype=dtype) / (sizes.query_dim * sizes.key_dim) ** 0.5
    }


def built(side, sizes, weights=None, dtype=torch.float64):
    """One module, the attempt's or the reference's, with these weights, or with random ones."""
    module = side.MultiplicativeAttention(sizes.query_dim, sizes.key_dim)
    module.load(weight(sizes, dtype) if weights is None else weights)
    return module


def pair(attempt, reference, sizes, weights=None):
    """The attempt's module and the reference's, with the same weights."""
    weights = weight(sizes) if weights is None else weights
    return built(attempt, sizes, weights), built(reference, sizes, weights)


def rounded_pair(attempt, reference, sizes, dtype):
    """The attempt's module in `dtype`, and the reference's in float64 with the same rounded weights."""
    weights = weight(sizes, dtype)
    exact = {name: value.to(torch.float64) for name, value in weights.items()}
    return built(attempt, sizes, weights), built(reference, sizes, exact)


def inputs(sizes, dtype=torch.float64):
    """query (B, Tq, query_dim), keys (B, Tk, key_dim), values (B, Tk, Dv)."""
    return (
        randn(sizes.B, sizes.Tq, sizes.query_dim, dtype=dtype),
        randn(sizes.B, sizes.Tk, sizes.key_dim, dtype=dtype),
        randn(sizes.B, sizes.Tk, sizes.Dv, dtype=dtype),
    )


def kept_first(sizes):
    """(B, Tk): kept keys first: half of them, 1, all, all but one, and again."""
    pattern = ((sizes.Tk + 1) // 2, 1, sizes.Tk, max(1, sizes.Tk - 1))
    return torch.arange(sizes.Tk) < torch.tensor([pattern[i % 4] for i in range(sizes.B)])[:, None]


def gaps(sizes):
    """(B, Tk): every other key is kept, from the second on, then from the first on."""
    if sizes.Tk == 1:
        return kept_first(sizes)
    return (torch.arange(sizes.Tk) + torch.arange(sizes.B)[:, None]) % 2 == 1


# ----------------------------------------------------------------------------------------------------- the module


@claims("The one parameter is k_proj.weight, of shape (query_dim, key_dim).", cases=SMALL,
        look_at="what k_proj reads, what it gives, and its bias")  # fmt: skip
def test_parameters(attempt, sizes):
    built(attempt, sizes)  # fails where names or shapes are others


@claims("The output is one tensor of shape (B, Tq, Dv).", needs="parameters", cases=(*ALIKE[:1], *SIZES),
        look_at="which dimension the weights sum over, and what they average")  # fmt: skip
def test_output_shape(attempt, sizes):
    out = built(attempt, sizes, dtype=torch.float32)(*inputs(sizes, torch.float32))

    assert_shape(out, (sizes.B, sizes.Tq, sizes.Dv))


# --------------------------------------------------------------------------------------------------- without keep


@claims(
    "Without keep, the output is the values averaged by the softmax of qᵀ (k_proj k).",
    look_at="the score, whether anything divides it, and the dimension of the softmax",
    needs="output_shape",
    cases=(*SIZES, *ALIKE),
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    query, keys, values = inputs(sizes)

    for left_out in ((), (None,)):  # keep not given, and given as None; right on the first call only is not right
        out = ours.run(query, keys, values, *left_out, training=False).output
        assert_close(out, theirs(query, keys, values), atol=1e-5)
        query, keys = query.flip(-2), 0.7 * keys


@claims(
    "One module takes any batch size and any lengths, call after call.",
    look_at="what is kept from one call to the next",
    needs="values",
    cases=SMALL[:1],
)
def test_sizes_may_change(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)

    for B, Tq, Tk, Dv in ((2, 3, 5, 4), (2, 4, 5, 4), (2, 3, 2, 6), (5, 2, 7, 4), (1, 1, 1, 1), (2, 3, 5, 4)):
        args = inputs(Sizes(B=B, Tq=Tq, Tk=Tk, query_dim=sizes.query_dim, key_dim=sizes.key_dim, Dv=Dv))
        assert_close(ours(*args), theirs(*args), atol=1e-5, what=f"out for B={B}, Tq={Tq}, Tk={Tk}, Dv={Dv}: out")


@claims(
    "Each query's weights over the keys sum to 1: where all values are equal, the output is that value.",
    look_at="which dimension of the scores the softmax normalises, and whether hidden keys lose their weight before it",
    needs="output_shape",
    cases=SMALL,
)
def test_weights_sum_to_one(attempt, sizes):
    ours = built(attempt, sizes)
    query, keys, values = inputs(sizes)
    same = values[:, :1].expand_as(values).contiguous()  # (B, Tk, Dv), one value for every key

    for flags in ((), (kept_first(sizes),)):
        out = ours.run(query, keys, same, *flags, training=False).output
        assert_close(out, same[:, :1].expand_as(out), atol=1e-5, what="out when all values are equal: out")


@claims(
    "A query's output does not depend on the other queries.",
    look_at="whether the softmax runs over the keys, the last dimension of the scores",
    needs="output_shape",
    cases=SMALL,
)
def test_queries_are_independent(attempt, sizes):
    ours = built(attempt, sizes)
    query, keys, values = inputs(sizes)
    changed = query.clone()
    changed[:, 1:] = randn(*changed[:, 1:].shape)

    before = ours.run(query, keys, values, training=False).output
    after = ours(changed, keys, values)

    assert_close(after[:, :1], before[:, :1], atol=1e-5, what="out[:, :1] when the later queries change")


@claims(
    "Samples do not mix: changing one leaves the others as they were.",
    look_at="whether the softmax, a reshape or the flags reach across samples",
    needs="output_shape",
    cases=SMALL,
)
def test_samples_are_independent(attempt, sizes):
    ours = built(attempt, sizes)
    args = inputs(sizes)
    others = [torch.cat([other[:1], given[1:]]) for other, given in zip(inputs(sizes), args, strict=True)]
    keep = gaps(sizes)
    other_keep = torch.cat([~keep[:1], keep[1:]])

    for flags, other_flags in (((), ()), ((keep,), (other_keep,))):
        before = ours.run(*args, *flags, training=False).output
        after = ours(*others, *other_flags)

        assert_close(after[1:], before[1:], atol=1e-5, what="out[1:] when sample 0 changes")


@claims(
    "Never causal: every query's output moves with the value of every key.",
    look_at="whether anything is hidden by its position",
    needs="output_shape",
    cases=(*SMALL, ALIKE[0]),
)
def test_every_key_matters(attempt, sizes):
    ours = built(attempt, sizes)
    query, keys, values = inputs(sizes)
    # Scores near 0, so that every key keeps a weight that shows, whatever the scale.
    query = query / 4
    before = ours.run(query, keys, values, training=False).output
    for key in range(sizes.Tk):
        changed = values.clone()
        changed[:, key] += 10
        moved = (ours(query, keys, changed) - before).abs().amax(dim=-1)  # (B, Tq)
        unmoved = (~(moved > 1e-6)).nonzero().tolist()  # [sample, query] each; NaN has not moved
        at = str(unmoved[:1])[2:-2]
        assert_holds(not unmoved, f"out[{at}] stays as it was when values[:, {key}] changes by 10")


# ------------------------------------------------------------------------------------------------------ with keep


@claims(
    "With keep, the output is attention among the kept keys alone, wherever they stand.",
    look_at="what a hidden score becomes before the softmax, and what the other weights sum to",
    needs="output_shape",
    cases=(*KEPT, *ALIKE),
)
def test_values_with_keep(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    args = inputs(sizes)

    for where, keep in (("first", kept_first(sizes)), ("among hidden ones", gaps(sizes))):
        out = ours.run(*args, keep, training=False).output
        assert_close(out, theirs(*args, keep), atol=1e-5, what=f"out with the kept keys {where}: out")


@claims(
    "Scores far from 0, about 30 either way, give the formula's values too, with keep and without.",
    look_at="whether anything bounds the scores, and what hidden ones are filled with",
    needs=("values", "values_with_keep"),
    cases=SMALL,
)
def test_strong_scores(attempt, reference, sizes):
    query, keys, values = inputs(sizes)
    spread = {"k_proj.weight": 20 * weight(sizes)["k_proj.weight"]}
    low = weight(sizes)  # the first feature takes 30 off every score
    low["k_proj.weight"][0] = 0.0
    low["k_proj.weight"][0, 0] = -1.0
    raised, lowered = keys.clone(), query.clone()
    raised[..., 0], lowered[..., 0] = 5.0, 6.0

    for weights, args, flags in ((spread, (query, keys), ()), (low, (lowered, raised), (kept_first(sizes),))):
        ours, theirs = pair(attempt, reference, sizes, weights)
        out = ours.run(*args, values, *flags, training=False).output
        # 1e-4, because scores of 30 cost float32 arithmetic on the way two digits
        assert_close(out, theirs(*args, values, *flags), atol=1e-4)


@claims(
    "Keys that are not kept do not matter, nor do their values.",
    look_at="whether keep is read, and along which dimension it acts",
    needs="output_shape",
    cases=SMALL,
)
def test_hidden_keys_do_not_matter(attempt, sizes):
    ours = built(attempt, sizes)
    query, keys, values = inputs(sizes)
    for keep in (kept_first(sizes), gaps(sizes)):
        hidden = ~keep[:, :, None]
        before = ours.run(query, keys, values, keep, training=False).output
        after = ours(query, torch.where(hidden, randn(*keys.shape), keys), values + 10 * hidden, keep)

        assert_close(after, before, atol=1e-5, what="out when hidden keys and values change: out")


@claims(
    "Keys that are kept matter to every query of their sample.",
    look_at="whether True means kept or hidden",
    needs="output_shape",
    cases=SMALL,
)
def test_kept_keys_matter(attempt, sizes):
    ours = built(attempt, sizes)
    query, keys, values = inputs(sizes)
    # Scores near 0, so that every key keeps a weight that shows, whatever the scale.
    query = query / 4
    keep = gaps(sizes)
    before = ours.run(query, keys, values, keep, training=False).output
    for key in range(sizes.Tk):
        changed = values.clone()
        changed[:, key] += 10
        moved = (ours(query, keys, changed, keep) - before).abs().amax(dim=-1)  # (B, Tq)
        unmoved = (keep[:, key, None] & ~(moved > 1e-6)).nonzero().tolist()  # NaN has not moved
        at = str(unmoved[:1])[2:-2]
        assert_holds(not unmoved, f"key {key} is kept and its value changes by 10, but out[{at}] stays as it was")


@claims(
    "Each sample has its own flags, also where B equals Tq or Tk.",
    look_at="how (B, Tk) lines up with (B, Tq, Tk)",
    needs="output_shape",
    cases=EQUAL,
)
def test_flags_belong_to_their_sample(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    args, keep = inputs(sizes), kept_first(sizes)

    out = ours.run(*args, keep, training=False).output

    assert_close(out, theirs(*args, keep), atol=1e-5)


# ------------------------------------------------------------------------------------------- true of every module


@claims("Train and eval give the same output.", needs="output_shape", cases=SMALL[:1],
        look_at="what depends on the mode")  # fmt: skip
def test_train_and_eval_agree(attempt, sizes):
    ours = built(attempt, sizes)
    args = inputs(sizes)

    for flags in ((), (kept_first(sizes),)):
        evaluated = ours.run(*args, *flags, training=False).output
        for _ in range(2):
            trained = ours.run(*args, *flags, training=True).output
            assert_close(trained, evaluated, atol=1e-5, what="out in train against eval: out")


@claims(
    "Gradients to query, keys, values and k_proj.weight are those of the definition.",
    look_at="whether anything on the way is detached, rounded or rewritten in place",
    needs="values",
    cases=SIZES[:3],
)
def test_gradients(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    for training in (True, False):
        check_gradients(ours, theirs, *inputs(sizes), training=training)


@claims(
    "With keep, gradients to query, keys, values and k_proj.weight are those of the definition.",
    look_at="how the weights of hidden keys become 0",
    needs="values_with_keep",
    cases=SMALL,
)
def test_gradients_with_keep(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    for keep in (gaps(sizes), kept_first(sizes)):
        check_gradients(ours, theirs, *inputs(sizes), keep)


@claims("The output's dtype is that of the inputs, in float32 and float64.", needs="output_shape", cases=SMALL[:1],
        look_at="conversions on the way, and tensors made without a dtype")  # fmt: skip
def test_output_dtype(attempt, sizes):
    for dtype in (torch.float32, torch.float64):
        ours = built(attempt, sizes, dtype=dtype)
        check_keeps_dtype(ours, *inputs(sizes), dtype=dtype)
        check_keeps_dtype(ours, *inputs(sizes), kept_first(sizes), dtype=dtype)


@claims("float32 inputs give right values within float32's rounding.", cases=SMALL,
        needs=("values", "values_with_keep"), look_at="arithmetic in a narrower dtype than the inputs'")  # fmt: skip
def test_float32(attempt, reference, sizes):
    ours, theirs = rounded_pair(attempt, reference, sizes, torch.float32)

    terms = sizes.query_dim * sizes.key_dim
    for flags in ((), (kept_first(sizes),)):
        check_computes_in_dtype(ours, theirs, *inputs(sizes), *flags, dtype=torch.float32, terms=terms)


@claims("query, keys, values and keep are left as they were.", needs="output_shape", cases=SMALL[:1],
        look_at="in-place operations on the arguments")  # fmt: skip
def test_inputs_unmodified(attempt, sizes):
    ours = built(attempt, sizes)

    check_leaves_inputs(ours, *inputs(sizes))
    check_leaves_inputs(ours, *inputs(sizes), kept_first(sizes))


@claims("Non-contiguous query, keys, values and keep give the same output.", needs=("values", "values_with_keep"),
        cases=SMALL, look_at="view on a tensor whose layout you do not know")  # fmt: skip
def test_non_contiguous_inputs(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    query, keys, values = inputs(sizes)
    shared = keys[:1].expand_as(keys), values[:1].expand_as(values)  # one sample's for all, in the memory of one

    check_takes_strided(ours, theirs, query, keys, values)
    check_takes_strided(ours, theirs, query, keys, values, gaps(sizes))
    assert_close(ours(query, *shared), theirs(query, *shared), atol=1e-5, what="out with expanded keys and values: out")


@claims("Everything lies on the device of the inputs.", needs="output_shape", cases=SMALL[:1],
        look_at="tensors made without device=")  # fmt: skip
def test_device(attempt, sizes):
    ours = built(attempt, sizes)

    check_stays_on_device(ours, *inputs(sizes))
    check_stays_on_device(ours, *inputs(sizes), kept_first(sizes))


@claims("No ready-made attention is called.", blocks=FORBIDDEN_ATTENTIONS, look_at="what the contract forbids",
        cases=(Sizes(B=2, Tq=3, Tk=150, query_dim=6, key_dim=5, Dv=6),))  # fmt: skip
def test_from_scratch(attempt, sizes):
    for dtype, training in ((torch.float64, True), (torch.float32, False)):
        ours = built(attempt, sizes, dtype=dtype)
        args = inputs(sizes, dtype)
        ours.run(*args, training=training)  # sets the mode
        for flags in ((), (kept_first(sizes),)):
            check_from_scratch(ours, *args, *flags)


# ------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "A query with nothing to attend to gets exactly 0, with finite gradients.",
    tier="edge",
    look_at="what the softmax of a row makes when every key of it is masked",
    needs="values_with_keep",
    cases=SMALL,
)
def test_nothing_to_attend_to(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    args = inputs(sizes)
    keep = kept_first(sizes)
    keep[1] = False  # sample 1 keeps nothing, the others do

    result = ours.run(*args, keep, cotangent=randn(sizes.B, sizes.Tq, sizes.Dv))

    nothing = result.output[1]  # (Tq, Dv)
    assert_close(nothing, torch.zeros_like(nothing), atol=0.0, what="out of the sample that keeps nothing: out")
    assert_close(result.output, theirs(*args, keep), atol=1e-5)
    named = {
        **dict(zip(("query", "keys", "values"), result.input_gradients, strict=True)),
        **result.parameter_gradients,
    }
    for name, gradient in named.items():
        finite = gradient is None or bool(gradient.isfinite().all())
        assert_holds(finite, f"the gradient of {name} is not finite when a sample keeps nothing")


@claims("Scores of about 1e4 in float32 give finite, right results, hidden keys included.", tier="edge",
        needs=("values", "values_with_keep"), cases=SMALL,
        look_at="exp of a large number, and what hidden scores are filled with")  # fmt: skip
def test_large_scores(attempt, reference, sizes):
    weights = {"k_proj.weight": (3 * randn(sizes.query_dim, sizes.key_dim)).round()}  # integers: scores are exact
    ours = built(attempt, sizes, {name: value.float() for name, value in weights.items()})
    theirs = built(reference, sizes, weights)
    query, keys, values = inputs(sizes)
    query, keys = (100 * query).round(), (3 * keys).round()
    keep = kept_first(sizes)

    larger = torch.where(keep[:, :, None], keys, 10 * keys)  # the largest scores may be hidden ones
    for given, flags in ((keys, ()), (larger, (keep,))):
        out = ours(query.float(), given.float(), values.float(), *flags)

        assert_close(out, theirs(query, given, values, *flags), atol=1e-2, rtol=1e-2, what="out")


@claims("float16 and bfloat16 work.", tier="edge", needs=("values", "values_with_keep"), cases=SMALL[:1],
        look_at="constants that the dtype cannot hold")  # fmt: skip
def test_half_precision(attempt, reference, sizes):
    for dtype in (torch.float16, torch.bfloat16):
        ours, theirs = rounded_pair(attempt, reference, sizes, dtype)
        for flags in ((), (kept_first(sizes),)):
            terms = sizes.query_dim * sizes.key_dim
            check_computes_in_dtype(ours, theirs, *inputs(sizes), *flags, dtype=dtype, terms=terms)


@claims("float64 is kept throughout: exact to 1e-9.", tier="edge", needs=("values", "values_with_keep"), cases=SMALL,
        look_at="conversions to float32 on the way")  # fmt: skip
def test_float64_throughout(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    args = inputs(sizes)

    for flags in ((), (kept_first(sizes),)):
        assert_close(ours(*args, *flags), theirs(*args, *flags), atol=1e-9)


@claims("The output shares no memory with an input.", tier="edge", needs="output_shape", cases=(SIZES[0], SIZES[3]),
        look_at="an input, or a view of one, that is returned")  # fmt: skip
def test_own_memory(attempt, sizes):
    ours = built(attempt, sizes)

    check_own_memory(ours, *inputs(sizes))
    check_own_memory(ours, *inputs(sizes), kept_first(sizes))
