"""Hidden tests of additive_attention: each tests one property of the contract in prompt.md."""

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
    flags_first,
    flags_with_gaps,
    randn,
    random_weights,
    standard,
)

SIZES = (
    Sizes(B=2, Tq=3, Tk=4, query_dim=5, key_dim=7, hidden_dim=8, Dv=6),
    Sizes(B=3, Tq=5, Tk=4, query_dim=8, key_dim=6, hidden_dim=7, Dv=2),
    Sizes(B=2, Tq=1, Tk=3, query_dim=4, key_dim=5, hidden_dim=6, Dv=7),
    Sizes(B=4, Tq=3, Tk=1, query_dim=2, key_dim=6, hidden_dim=5, Dv=7),
    Sizes(B=1, Tq=2, Tk=5, query_dim=1, key_dim=3, hidden_dim=4, Dv=1),
    Sizes(B=2, Tq=5, Tk=5, query_dim=6, key_dim=6, hidden_dim=6, Dv=6),
    Sizes(B=2, Tq=4, Tk=3, query_dim=5, key_dim=2, hidden_dim=1, Dv=6),
    Sizes(B=2, Tq=3, Tk=150, query_dim=4, key_dim=5, hidden_dim=6, Dv=2),
    Sizes(B=1, Tq=131, Tk=4, query_dim=3, key_dim=5, hidden_dim=6, Dv=2),
    Sizes(B=2, Tq=4, Tk=3, query_dim=5, key_dim=1, hidden_dim=4, Dv=6),
    Sizes(B=1, Tq=3, Tk=4, query_dim=70, key_dim=66, hidden_dim=68, Dv=67),
)
EVERY = (
    *SIZES,
    Drawn(B=(1, 4), Tq=(1, 30), Tk=(1, 30), query_dim=(1, 24), key_dim=(1, 24), hidden_dim=(1, 24), Dv=(1, 24)),
)
SMALL = SIZES[:2]
KEPT = (
    *SIZES[:3],
    SIZES[4],
    SIZES[7],
    Drawn(B=(1, 4), Tq=(1, 30), Tk=(2, 30), query_dim=(1, 24), key_dim=(1, 24), hidden_dim=(1, 24), Dv=(1, 24)),
)
# B is equal to Tq, to Tk, to both.
EQUAL = (
    Sizes(B=3, Tq=3, Tk=5, query_dim=4, key_dim=6, hidden_dim=7, Dv=2),
    Sizes(B=5, Tq=3, Tk=5, query_dim=4, key_dim=6, hidden_dim=7, Dv=2),
    Sizes(B=3, Tq=3, Tk=3, query_dim=4, key_dim=6, hidden_dim=7, Dv=2),
)


def pair(attempt, reference, sizes, dtype=torch.float64):
    """The attempt's module and the reference's, with the same random weights."""
    build = sizes.query_dim, sizes.key_dim, sizes.hidden_dim
    return build_pair(attempt, reference, "AdditiveAttention", *build, dtype=dtype)


def inputs(sizes):
    """query (B, Tq, query_dim), keys (B, Tk, key_dim), values (B, Tk, Dv)."""
    return (
        randn(sizes.B, sizes.Tq, sizes.query_dim),
        randn(sizes.B, sizes.Tk, sizes.key_dim),
        randn(sizes.B, sizes.Tk, sizes.Dv),
    )


def mild(sizes):
    """As `inputs`, with small keys: no weight is nearly 0, whatever else may be wrong with the scores."""
    query, keys, values = inputs(sizes)
    return query, keys / 4, values


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
    terms=lambda sizes: sizes.Tk * sizes.hidden_dim,
)
test_from_scratch = standard.from_scratch(module, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[5], SIZES[7]))


# ----------------------------------------------------------------------------------------------------- the module


@claims(
    "The parameters are q_proj.weight, k_proj.weight and score_proj.weight, and no others: no biases.",
    look_at="the layers made in __init__: their names, their sizes, their biases",
    cases=SMALL,
)
def test_parameters(attempt, reference, sizes):
    pair(attempt, reference, sizes)


@claims(
    "The output is one tensor of shape (B, Tq, Dv).",
    needs="parameters",
    cases=SIZES[:6],
    look_at="which dimensions of size 1 the sum needs, and which dimension is left over after score_proj",
)
def test_output_shape(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)

    assert_shape(ours(*inputs(sizes)), (sizes.B, sizes.Tq, sizes.Dv))


@claims(
    "With keep, the output has the same shape.",
    needs="output_shape",
    cases=SIZES[:4],
    look_at="which dimension of the scores is missing in keep (B, Tk)",
)
def test_takes_keep(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)

    assert_shape(ours(*inputs(sizes), gaps(sizes)), (sizes.B, sizes.Tq, sizes.Dv))


# --------------------------------------------------------------------------------------------------- without keep


@claims(
    "Without keep, the output is softmax(score_proj(tanh(q_proj(q) + k_proj(k)))) over the keys, times the values.",
    look_at="what comes between the projections and the score, and the dimension of the softmax",
    needs="output_shape",
    cases=EVERY,
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    query, keys, values = inputs(sizes)

    for left_out in ((), (None,)):  # keep not given, and given as None; and a second call must be right too
        out = ours(query, keys, values, *left_out)
        assert_close(out, theirs(query, keys, values), atol=1e-5)
        query, keys = query.flip(-2), 0.7 * keys
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "The scores are not scaled, and large scores are right too.",
    look_at="what happens to a score between score_proj and the softmax",
    needs="output_shape",
    cases=SMALL,
)
def test_strong_scores(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    weights = random_weights(theirs.parameters)
    weights["score_proj.weight"] = 8 * weights["score_proj.weight"]
    ours.load(weights)
    theirs.load(weights)
    given = inputs(sizes)

    # 1e-4, because with large scores an attempt that computes in float32 loses a digit
    assert_close(ours(*given), theirs(*given), atol=1e-4, what="out with strong scores: out")


@claims(
    "The weights depend on the query: another query gets another mixture of the values.",
    look_at="where the tanh stands",
    needs="output_shape",
    cases=SIZES[:3],
)
def test_query_matters(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    query, keys, values = mild(sizes)
    before = ours(query, keys, values)

    moved = (ours(query + 2 * randn(*query.shape), keys, values) - before).abs().amax(dim=-1)  # (B, Tq)

    unmoved = (~(moved > 1e-6)).nonzero().tolist()  # [sample, query] each; NaN counts as not moved
    assert_holds(not unmoved, f"out[{str(unmoved[:1])[2:-2]}] stays as it was when the queries change")


@claims(
    "Each query's weights over the keys sum to 1: if all values are equal, the output is that value.",
    look_at="which dimension of the scores the softmax normalises, and whether hidden keys lose their weight before it",
    needs="takes_keep",
    cases=SIZES[:3],
)
def test_weights_sum_to_one(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    query, keys, values = inputs(sizes)
    same = values[:, :1].expand_as(values).contiguous()  # (B, Tk, Dv), one value for every key

    for flags in ((), (kept_first(sizes),)):
        out = ours(query, keys, same, *flags)
        assert_close(out, same[:, :1].expand_as(out), atol=1e-5, what="out when all values are equal: out")


@claims(
    "There is no causal mask: every query sees every key.",
    look_at="whether anything is hidden by its position",
    needs="output_shape",
    cases=(*SMALL, SIZES[5]),
)
def test_never_causal(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    query, keys, values = mild(sizes)
    before = ours(query, keys, values)
    for position in range(sizes.Tk):
        changed = values.clone()
        changed[:, position] += 10
        moved = (ours(query, keys, changed) - before).abs().amax(dim=-1)  # (B, Tq)
        unmoved = (~(moved > 1e-6)).nonzero().tolist()
        assert_holds(not unmoved, f"out[{str(unmoved[:1])[2:-2]}] stays as it was when values[:, {position}] changes")


@claims(
    "A query's output does not depend on the other queries.",
    look_at="whether the softmax runs over the keys, the last dimension of the scores",
    needs="output_shape",
    cases=SMALL,
)
def test_queries_are_independent(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    query, keys, values = inputs(sizes)
    changed = query.clone()
    changed[:, 1:] = randn(*changed[:, 1:].shape)

    before, after = ours(query, keys, values), ours(changed, keys, values)

    assert_close(after[:, :1], before[:, :1], atol=1e-5, what="out[:, :1] when the later queries change")


@claims(
    "Samples do not mix: changing one does not change the others.",
    look_at="whether the sum, the softmax or the flags reach across samples",
    needs="takes_keep",
    cases=(*SMALL, EQUAL[0]),
)
def test_samples_are_independent(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    given = inputs(sizes)
    other = [part.clone() for part in given]
    for part in other:
        part[0] = randn(*part[0].shape)
    keep = gaps(sizes)
    other_keep = keep.clone()
    other_keep[0] = ~keep[0]

    for flags, other_flags in (((), ()), ((keep,), (other_keep,))):
        before, after = ours(*given, *flags), ours(*other, *other_flags)
        assert_close(after[1:], before[1:], atol=1e-5, what="out[1:] when sample 0 changes")


# ------------------------------------------------------------------------------------------------------ with keep


@claims(
    "With keep, the output is attention among the kept keys alone, wherever they are.",
    look_at="what a hidden score becomes before the softmax, and what the other weights sum to",
    needs="takes_keep",
    cases=KEPT,
)
def test_values_with_keep(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    given = inputs(sizes)
    first = kept_first(sizes)

    for where, keep in (("at the start", first), ("at the end", first.flip(-1)), ("with gaps", gaps(sizes))):
        what = f"out with kept keys {where}: out"
        assert_close(ours(*given, keep), theirs(*given, keep), atol=1e-5, what=what)


@claims(
    "Hidden keys and their values do not change the output.",
    look_at="whether keep is read, and along which dimension it acts",
    needs="takes_keep",
    cases=KEPT[:3],
)
def test_hidden_keys_do_not_matter(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    query, keys, values = inputs(sizes)
    for keep in (kept_first(sizes), gaps(sizes)):
        hidden = ~keep[:, :, None]  # (B, Tk, 1)
        before = ours(query, keys, values, keep)
        after = ours(query, keys + hidden * 10 * randn(*keys.shape), values + hidden * 10, keep)

        assert_close(after, before, atol=1e-5, what="out when hidden keys and values change: out")


@claims(
    "Every kept key changes the output of every query of its sample.",
    look_at="whether True means kept or hidden",
    needs="takes_keep",
    cases=KEPT[:3],
)
def test_kept_keys_matter(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    query, keys, values = mild(sizes)
    keep = gaps(sizes)
    before = ours(query, keys, values, keep)
    for position in range(sizes.Tk):
        changed = values.clone()
        changed[:, position] += 10
        moved = (ours(query, keys, changed, keep) - before).abs().amax(dim=-1)  # (B, Tq)
        for sample in keep[:, position].nonzero().flatten().tolist():
            unmoved = (~(moved[sample] > 1e-6)).nonzero().flatten().tolist()
            assert_holds(
                not unmoved,
                f"values[{sample}, {position}] is kept and changes by 10, "
                f"but out[{sample}, {str(unmoved[:1])[1:-1]}] stays as it was",
            )


@claims(
    "Each sample has its own flags, also where B equals Tq or Tk.",
    look_at="how (B, Tk) is aligned with (B, Tq, Tk)",
    needs=("takes_keep", "values"),
    cases=EQUAL,
)
def test_flags_belong_to_their_sample(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    given = inputs(sizes)

    for keep in (kept_first(sizes), gaps(sizes)):
        assert_close(ours(*given, keep), theirs(*given, keep), atol=1e-5)


# ------------------------------------------------------------------------------------------- true of every module


test_train_and_eval_alike = standard.train_and_eval_alike(module, needs="takes_keep", cases=SMALL[:1])
test_gradients = standard.gradients(
    module,
    claim="Gradients to query, keys, values and every parameter are those of the definition.",
    calls=lambda sizes: [inputs(sizes)],
    needs="values",
    cases=SIZES[:4],
)
test_gradients_with_keep = standard.gradients(
    module,
    claim="With keep, gradients to query, keys, values and every parameter are those of the definition.",
    calls=lambda sizes: [(*inputs(sizes), gaps(sizes))],
    needs="values_with_keep",
    cases=SIZES[:3],
)
test_output_dtype = standard.output_dtype(module, needs="takes_keep", cases=SMALL[:1])
test_float32 = standard.float32(module, needs="values_with_keep", cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(
    module,
    calls=lambda sizes: [(*inputs(sizes), *flags) for flags in ((), (kept_first(sizes),), (gaps(sizes),))],
    needs="takes_keep",
    cases=(SMALL[0], SIZES[5]),
)
test_non_contiguous_inputs = standard.non_contiguous_inputs(module, needs="values_with_keep", cases=SMALL)
test_device = standard.device(module, needs="takes_keep", cases=SMALL[:1])


# --------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "A query with nothing to attend to gets exactly 0, with finite gradients.",
    tier="edge",
    look_at="what the softmax gives for a row whose keys are all hidden",
    needs="values_with_keep",
    cases=(*SMALL, SIZES[3]),
)
def test_nothing_to_attend_to(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    given = inputs(sizes)
    keep = kept_first(sizes)
    keep[1] = False  # sample 1 keeps nothing
    cotangent = randn(sizes.B, sizes.Tq, sizes.Dv)

    result = ours.run(*given, keep, cotangent=cotangent)

    what = "out of the sample without a kept key: out"
    assert_close(result.output[1], torch.zeros_like(result.output[1]), atol=0.0, what=what)
    assert_close(result.output, theirs(*given, keep), atol=1e-5)
    named = dict(zip(("query", "keys", "values"), result.input_gradients, strict=True)) | result.parameter_gradients
    for name, gradient in named.items():
        finite = gradient is None or bool(gradient.isfinite().all())
        assert_holds(finite, f"the gradient of {name} is not finite when a sample has no kept key")


@claims(
    "Scores of about 1e4 in float32 give finite, right results, hidden keys included.",
    tier="edge",
    needs="values_with_keep",
    cases=SMALL,
    look_at="exp of a large number, and what hidden scores are filled with",
)
def test_large_scores(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    weights = random_weights(theirs.parameters, torch.float32)
    for scale in (1e4, -1e4):  # the largest scores may be hidden ones
        loud = {name: weight * (scale if name == "score_proj.weight" else 1.0) for name, weight in weights.items()}
        ours.load(loud)
        theirs.load({name: weight.double() for name, weight in loud.items()})
        given = [part.float() for part in inputs(sizes)]
        for flags in ((), (gaps(sizes),)):
            out = ours(*given, *flags)
            assert_close(out, theirs(*(part.double() for part in given), *flags), atol=2e-2)


test_half_precision = standard.half_precision(module, needs="values_with_keep", cases=SMALL)
test_float64_throughout = standard.float64_throughout(module, needs="values_with_keep", cases=SMALL)
test_own_memory = standard.own_memory(module, needs="takes_keep", cases=(SIZES[0], SIZES[3]))
