"""Hidden tests of multiplicative_attention: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Drawn,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
    claims,
    flags_first,
    flags_with_gaps,
    randn,
    standard,
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
    Sizes(B=1, Tq=3, Tk=4, query_dim=70, key_dim=66, Dv=67),
)
EVERY = (*SIZES, Drawn(B=(1, 4), Tq=(1, 30), Tk=(1, 30), query_dim=(1, 24), key_dim=(1, 24), Dv=(1, 24)))
SMALL = SIZES[:2]
KEPT = (
    *(sizes for sizes in SIZES if sizes.Tk > 1),
    Drawn(B=(1, 4), Tq=(1, 30), Tk=(2, 30), query_dim=(1, 24), key_dim=(1, 24), Dv=(1, 24)),
)
# Sizes that could be taken for one another.
ALIKE = (
    Sizes(B=2, Tq=4, Tk=4, query_dim=5, key_dim=5, Dv=5),
    Sizes(B=3, Tq=3, Tk=3, query_dim=3, key_dim=3, Dv=3),
)
# B is equal to one of the lengths, then to both.
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


def pair(attempt, reference, sizes, dtype=torch.float64, weights=None):
    """The attempt's module and the reference's in float64, with the same weights, rounded to `dtype`."""
    weights = weight(sizes, dtype) if weights is None else weights
    exact = {name: value.double() for name, value in weights.items()}
    return built(attempt, sizes, weights), built(reference, sizes, exact)


def inputs(sizes, dtype=torch.float64):
    """query (B, Tq, query_dim), keys (B, Tk, key_dim), values (B, Tk, Dv)."""
    return (
        randn(sizes.B, sizes.Tq, sizes.query_dim, dtype=dtype),
        randn(sizes.B, sizes.Tk, sizes.key_dim, dtype=dtype),
        randn(sizes.B, sizes.Tk, sizes.Dv, dtype=dtype),
    )


def kept_first(sizes):
    """(B, Tk): kept keys first. Their numbers are half, 1, all, all but one, and again."""
    return flags_first(sizes.B, sizes.Tk)


def gaps(sizes):
    """(B, Tk): every other key is kept, from the second on, then from the first on."""
    return flags_with_gaps(sizes.B, sizes.Tk)


module = standard.module(
    pair,
    lambda sizes: [inputs(sizes), (*inputs(sizes), gaps(sizes))],
    inputs="query, keys, values and keep",
    terms=lambda sizes: sizes.query_dim * sizes.key_dim,
)
test_from_scratch = standard.from_scratch(
    module, blocks=FORBIDDEN_ATTENTIONS, cases=(Sizes(B=2, Tq=3, Tk=150, query_dim=6, key_dim=5, Dv=6),)
)


# ----------------------------------------------------------------------------------------------------- the module


@claims(
    "The one parameter is k_proj.weight, of shape (query_dim, key_dim).",
    cases=SMALL,
    look_at="what k_proj reads, what it gives, and its bias",
)
def test_parameters(attempt, sizes):
    built(attempt, sizes)  # fails where names or shapes differ


@claims(
    "The output is one tensor of shape (B, Tq, Dv).",
    needs="parameters",
    cases=(*ALIKE[:1], *EVERY),
    look_at="which dimension the weights sum over, and what they average",
)
def test_output_shape(attempt, sizes):
    out = built(attempt, sizes, dtype=torch.float32)(*inputs(sizes, torch.float32))

    assert_shape(out, (sizes.B, sizes.Tq, sizes.Dv))


# --------------------------------------------------------------------------------------------------- without keep


@claims(
    "Without keep, the output is the values averaged by the softmax of qᵀ (k_proj k).",
    look_at="the score, whether anything divides it, and the dimension of the softmax",
    needs="output_shape",
    cases=(*EVERY, *ALIKE),
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    query, keys, values = inputs(sizes)

    for left_out in ((), (None,)):  # keep not given, and given as None; and a second call must be right too
        out = ours.run(query, keys, values, *left_out, training=False).output
        assert_close(out, theirs(query, keys, values), atol=1e-5)
        query, keys = query.flip(-2), 0.7 * keys
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "One module takes any batch size and any lengths, call after call.",
    look_at="what the module stores from one call to the next",
    needs="values",
    cases=SMALL[:1],
)
def test_sizes_may_change(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)

    for B, Tq, Tk, Dv in ((2, 3, 5, 4), (2, 4, 5, 4), (2, 3, 2, 6), (5, 2, 7, 4), (1, 1, 1, 1), (2, 3, 5, 4)):
        args = inputs(Sizes(B=B, Tq=Tq, Tk=Tk, query_dim=sizes.query_dim, key_dim=sizes.key_dim, Dv=Dv))
        assert_close(ours(*args), theirs(*args), atol=1e-5, what=f"out for B={B}, Tq={Tq}, Tk={Tk}, Dv={Dv}: out")


@claims(
    "Each query's weights over the keys sum to 1: if all values are equal, the output is that value.",
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
    "Samples do not mix: changing one does not change the others.",
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
    "There is no causal mask: every query's output changes with the value of every key.",
    look_at="whether anything is hidden by its position",
    needs="output_shape",
    cases=(*SMALL, ALIKE[0]),
)
def test_every_key_matters(attempt, sizes):
    ours = built(attempt, sizes)
    query, keys, values = inputs(sizes)
    # Scores near 0, so that no weight is nearly 0, for any scale.
    query = query / 4
    before = ours.run(query, keys, values, training=False).output
    for key in range(sizes.Tk):
        changed = values.clone()
        changed[:, key] += 10
        moved = (ours(query, keys, changed) - before).abs().amax(dim=-1)  # (B, Tq)
        unmoved = (~(moved > 1e-6)).nonzero().tolist()  # [sample, query] each; NaN counts as not moved
        at = str(unmoved[:1])[2:-2]
        assert_holds(not unmoved, f"out[{at}] stays as it was when values[:, {key}] changes by 10")


# ------------------------------------------------------------------------------------------------------ with keep


@claims(
    "With keep, the output is attention among the kept keys alone, wherever they are.",
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
    "Scores far from 0, up to about 30 and -30, give the formula's values too, with keep and without.",
    look_at="whether anything limits the scores, and what hidden ones are filled with",
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
        ours, theirs = pair(attempt, reference, sizes, weights=weights)
        out = ours.run(*args, values, *flags, training=False).output
        # 1e-4, because with scores of 30 an attempt that computes in float32 loses two digits
        assert_close(out, theirs(*args, values, *flags), atol=1e-4)


@claims(
    "Hidden keys and their values do not change the output.",
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
    "Every kept key changes the output of every query of its sample.",
    look_at="whether True means kept or hidden",
    needs="output_shape",
    cases=SMALL,
)
def test_kept_keys_matter(attempt, sizes):
    ours = built(attempt, sizes)
    query, keys, values = inputs(sizes)
    # Scores near 0, so that no weight is nearly 0, for any scale.
    query = query / 4
    keep = gaps(sizes)
    before = ours.run(query, keys, values, keep, training=False).output
    for key in range(sizes.Tk):
        changed = values.clone()
        changed[:, key] += 10
        moved = (ours(query, keys, changed, keep) - before).abs().amax(dim=-1)  # (B, Tq)
        unmoved = (keep[:, key, None] & ~(moved > 1e-6)).nonzero().tolist()  # NaN counts as not moved
        at = str(unmoved[:1])[2:-2]
        assert_holds(not unmoved, f"key {key} is kept and its value changes by 10, but out[{at}] stays as it was")


@claims(
    "Each sample has its own flags, also where B equals Tq or Tk.",
    look_at="how (B, Tk) is aligned with (B, Tq, Tk)",
    needs="values",
    cases=EQUAL,
)
def test_flags_belong_to_their_sample(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    args, keep = inputs(sizes), kept_first(sizes)

    out = ours.run(*args, keep, training=False).output

    assert_close(out, theirs(*args, keep), atol=1e-5)


# ------------------------------------------------------------------------------------------- true of every module


test_train_and_eval_agree = standard.train_and_eval_alike(module, needs="output_shape", cases=SMALL[:1])
test_gradients = standard.gradients(
    module,
    claim="Gradients to query, keys, values and k_proj.weight are those of the definition.",
    calls=lambda sizes: [inputs(sizes)],
    needs="values",
    cases=SIZES[:3],
)
test_gradients_with_keep = standard.gradients(
    module,
    claim="With keep, gradients to query, keys, values and k_proj.weight are those of the definition.",
    look_at="how the weights of hidden keys become 0",
    calls=lambda sizes: [(*inputs(sizes), keep) for keep in (gaps(sizes), kept_first(sizes))],
    needs="values_with_keep",
    cases=SMALL,
)
test_output_dtype = standard.output_dtype(module, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(module, needs=("values", "values_with_keep"), cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(module, needs="output_shape", cases=SMALL[:1])
test_non_contiguous_inputs = standard.non_contiguous_inputs(module, needs=("values", "values_with_keep"), cases=SMALL)
test_device = standard.device(module, needs="output_shape", cases=SMALL[:1])


# ------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "A query with nothing to attend to gets exactly 0, with finite gradients.",
    tier="edge",
    look_at="what the softmax gives for a row whose keys are all masked",
    needs="values_with_keep",
    cases=SMALL,
)
def test_nothing_to_attend_to(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    args = inputs(sizes)
    keep = kept_first(sizes)
    keep[1] = False  # only sample 1 keeps nothing

    result = ours.run(*args, keep, cotangent=randn(sizes.B, sizes.Tq, sizes.Dv))

    nothing = result.output[1]  # (Tq, Dv)
    assert_close(nothing, torch.zeros_like(nothing), atol=0.0, what="out of the sample without a kept key: out")
    assert_close(result.output, theirs(*args, keep), atol=1e-5)
    named = {
        **dict(zip(("query", "keys", "values"), result.input_gradients, strict=True)),
        **result.parameter_gradients,
    }
    for name, gradient in named.items():
        finite = gradient is None or bool(gradient.isfinite().all())
        assert_holds(finite, f"the gradient of {name} is not finite when a sample has no kept key")


@claims(
    "Scores of about 1e4 in float32 give finite, right results, hidden keys included.",
    tier="edge",
    needs=("values", "values_with_keep"),
    cases=SMALL,
    look_at="exp of a large number, and what hidden scores are filled with",
)
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


test_half_precision = standard.half_precision(module, needs=("values", "values_with_keep"), cases=SMALL[:1])
test_float64_throughout = standard.float64_throughout(module, needs=("values", "values_with_keep"), cases=SMALL)
test_own_memory = standard.own_memory(module, needs="output_shape", cases=(SIZES[0], SIZES[3]))
