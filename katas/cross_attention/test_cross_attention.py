"""Hidden tests of cross_attention: each tests one property of the contract in prompt.md."""

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
    flags_first,
    flags_with_gaps,
    randn,
    random_weights,
    standard,
)


def sized(*, H, D, **sizes):
    return Sizes(H=H, E=H * D, **sizes)


SIZES = (
    Sizes(B=3, H=4, Tq=5, Tk=6, E=8, context_dim=12),
    Sizes(B=2, H=3, Tq=7, Tk=4, E=15, context_dim=9),
    Sizes(B=2, H=1, Tq=1, Tk=3, E=5, context_dim=7),
    Sizes(B=4, H=5, Tq=3, Tk=1, E=15, context_dim=10),
    Sizes(B=1, H=7, Tq=3, Tk=150, E=7, context_dim=14),
    Sizes(B=3, H=2, Tq=131, Tk=8, E=10, context_dim=12),
    Sizes(B=2, H=1, Tq=3, Tk=4, E=1, context_dim=5),
    Sizes(B=1, H=2, Tq=3, Tk=4, E=140, context_dim=70),
)
EVERY = (*SIZES, Drawn(sized, B=(1, 4), H=(1, 4), Tq=(1, 30), Tk=(1, 30), D=(1, 24), context_dim=(1, 24)))
SMALL = SIZES[:2]
KEPT = tuple(sizes for sizes in SIZES if sizes.Tk > 1)
# x and the context have the same length.
SAME_LENGTH = (
    Sizes(B=2, H=3, Tq=5, Tk=5, E=6, context_dim=9),
    Sizes(B=3, H=2, Tq=1, Tk=1, E=10, context_dim=8),
)
# B is equal to one other size in each, and to all of them in the last.
EQUAL = (
    Sizes(B=3, H=2, Tq=3, Tk=5, E=4, context_dim=6),
    Sizes(B=3, H=3, Tq=2, Tk=5, E=6, context_dim=9),
    Sizes(B=5, H=2, Tq=3, Tk=5, E=4, context_dim=6),
    Sizes(B=3, H=3, Tq=3, Tk=3, E=9, context_dim=9),
)


def shapes(sizes):
    """The parameters that the contract names, and their shapes."""
    E, context_dim = sizes.E, sizes.context_dim
    return {
        "q_proj.weight": (E, E),
        "q_proj.bias": (E,),
        "k_proj.weight": (E, context_dim),
        "k_proj.bias": (E,),
        "v_proj.weight": (E, context_dim),
        "v_proj.bias": (E,),
        "o_proj.weight": (E, E),
        "o_proj.bias": (E,),
    }


def some_weights(sizes, dtype=torch.float64):
    """Random weights whose scores are about 1: softmax rows neither flat nor with nearly all weight on one key."""
    weights = random_weights(shapes(sizes), dtype)
    weights["q_proj.weight"] *= 0.4
    return weights


def built(side, sizes, weights=None, dtype=torch.float64):
    """One module, the attempt's or the reference's, with these weights, or with random ones."""
    weights = some_weights(sizes, dtype) if weights is None else weights
    return side.CrossAttention.loaded(weights, sizes.E, sizes.context_dim, sizes.H)


def pair(attempt, reference, sizes, dtype=torch.float64, weights=None):
    """The attempt's module and the reference's in float64, with the same weights, rounded to `dtype`."""
    weights = some_weights(sizes, dtype) if weights is None else weights
    exact = {name: value.double() for name, value in weights.items()}
    return built(attempt, sizes, weights), built(reference, sizes, exact)


def inputs(sizes, dtype=torch.float64):
    """x (B, Tq, E), context (B, Tk, context_dim)."""
    return (
        randn(sizes.B, sizes.Tq, sizes.E, dtype=dtype),
        randn(sizes.B, sizes.Tk, sizes.context_dim, dtype=dtype),
    )


def kept_first(sizes):
    """(B, Tk): kept tokens first. Their numbers are half, 1, all, all but one, and again."""
    return flags_first(sizes.B, sizes.Tk)


def gaps(sizes):
    """(B, Tk): every other token is kept, from the second on, then from the first on."""
    return flags_with_gaps(sizes.B, sizes.Tk)


module = standard.module(
    pair,
    lambda sizes: [inputs(sizes), (*inputs(sizes), gaps(sizes))],
    inputs="x, context and keep",
    terms=lambda sizes: sizes.E * sizes.context_dim,
)
test_from_scratch = standard.from_scratch(
    module, blocks=FORBIDDEN_ATTENTIONS, cases=(Sizes(B=2, H=3, Tq=4, Tk=150, E=6, context_dim=9),)
)


# ----------------------------------------------------------------------------------------------------- the module


@claims(
    "The parameters are those of q_proj, k_proj, v_proj and o_proj, of the contract's shapes.",
    cases=SMALL,
    look_at="names, biases, and which projection reads the context",
)
def test_parameters(attempt, sizes):
    built(attempt, sizes)  # fails where names or shapes differ


@claims(
    "A num_heads that does not divide embed_dim raises ValueError.",
    look_at="where the size of one head is computed",
    needs="parameters",
    cases=(
        Sizes(E=6, H=4, context_dim=8),
        Sizes(E=10, H=3, context_dim=9),
        Sizes(E=2, H=3, context_dim=6),
    ),
)
def test_indivisible_heads(attempt, sizes):
    x, context = randn(2, 3, sizes.E, dtype=torch.float32), randn(2, 5, sizes.context_dim, dtype=torch.float32)

    check_raises_value_error(
        lambda: attempt.CrossAttention(sizes.E, sizes.context_dim, sizes.H)(x, context),
        f"CrossAttention({sizes.E}, {sizes.context_dim}, {sizes.H})",
    )


@claims(
    "The output is one tensor of shape (B, Tq, E).",
    needs="parameters",
    cases=SAME_LENGTH,
    look_at="which dimension the weights sum over, and how the heads are merged",
)
def test_output_shape(attempt, sizes):
    out = built(attempt, sizes, dtype=torch.float32)(*inputs(sizes, torch.float32))

    assert_shape(out, (sizes.B, sizes.Tq, sizes.E))


@claims(
    "x and the context may have different lengths.",
    look_at="which length the keys, the values and the output have",
    needs="output_shape",
    cases=SIZES[:3],
)
def test_lengths_are_free(attempt, sizes):
    out = built(attempt, sizes, dtype=torch.float32)(*inputs(sizes, torch.float32))

    assert_shape(out, (sizes.B, sizes.Tq, sizes.E))


@claims(
    "context_dim may be smaller or larger than embed_dim, and need not be divisible by num_heads.",
    look_at="what is checked or split by the size of the context",
    needs="lengths_are_free",
    cases=(
        Sizes(B=2, H=3, Tq=4, Tk=5, E=6, context_dim=1),
        Sizes(B=2, H=3, Tq=4, Tk=5, E=6, context_dim=6),
        Sizes(B=2, H=5, Tq=3, Tk=2, E=10, context_dim=7),
    ),
)
def test_context_dim_is_free(attempt, sizes):
    out = built(attempt, sizes, dtype=torch.float32)(*inputs(sizes, torch.float32))

    assert_shape(out, (sizes.B, sizes.Tq, sizes.E))


# --------------------------------------------------------------------------------------------------- without keep


@claims(
    "Without keep, the output is multi-head attention from x to the whole context.",
    look_at="the scale, the dimension of the softmax, the split into heads, and the use of each projection",
    needs="lengths_are_free",
    cases=(*EVERY, Sizes(B=3, H=2, Tq=5, Tk=5, E=6, context_dim=6)),
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x, context = inputs(sizes)

    for left_out in ((), (None,)):  # keep not given, and given as None; and a second call must be right too
        out = ours.run(x, context, *left_out, training=False).output
        assert_close(out, theirs(x, context), atol=1e-5)
        x, context = x.flip(-2), 0.7 * context
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "There is no causal mask: every query sees the whole context.",
    look_at="whether anything is hidden by its position",
    needs="lengths_are_free",
    cases=(*SMALL, SAME_LENGTH[0]),
)
def test_never_causal(attempt, sizes):
    ours = built(attempt, sizes)
    x, context = inputs(sizes)
    # Scores near 0, so that no weight is nearly 0, for any scale.
    x = x / 4
    before = ours.run(x, context, training=False).output
    for position in (0, sizes.Tk - 1):
        changed = context.clone()
        changed[:, position] += 3 * randn(sizes.context_dim)
        moved = (ours(x, changed) - before).abs().amax(dim=-1)  # (B, Tq)
        unmoved = (~(moved > 1e-6)).nonzero().tolist()  # [sample, query] each; NaN counts as not moved
        assert_holds(not unmoved, f"out[{str(unmoved[:1])[2:-2]}] stays as it was when context[:, {position}] changes")


@claims(
    "Head h owns columns h*D to (h+1)*D of every projection, and of what goes into o_proj.",
    look_at="the order of the two steps that split the columns, and of the two steps that merge them",
    needs="lengths_are_free",
    cases=SMALL,
)
def test_head_owns_its_columns(attempt, sizes):
    weights = some_weights(sizes)
    weights["o_proj.weight"] = torch.eye(sizes.E, dtype=torch.float64)  # the output shows the heads as they are merged
    weights["o_proj.bias"] = torch.zeros(sizes.E, dtype=torch.float64)
    x, context = inputs(sizes)
    ours = built(attempt, sizes, weights)
    before = ours.run(x, context, training=False).output
    size = sizes.E // sizes.H
    for head in (0, sizes.H - 1):
        own = torch.arange(sizes.E) // size == head  # (E,)
        changed = {name: weight.clone() for name, weight in weights.items()}
        for name in ("q_proj.weight", "k_proj.weight", "v_proj.weight"):
            changed[name][own] = randn(*changed[name][own].shape)
        ours.load(changed)
        after = ours(x, context)
        what = f"the columns of the other heads when the projections of head {head} change: out"

        assert_close(torch.where(own, before, after), before, atol=1e-5, what=what)
        assert_holds(
            not torch.allclose(after[..., own], before[..., own], atol=1e-5, rtol=0.0),
            f"columns {head * size} to {head * size + size} do not change when the projections of head {head} change",
        )


@claims(
    "A query's output does not depend on the other queries.",
    look_at="whether the softmax runs over the context, and whether the split keeps tokens apart",
    needs="lengths_are_free",
    cases=SMALL,
)
def test_queries_are_independent(attempt, sizes):
    ours = built(attempt, sizes)
    x, context = inputs(sizes)
    changed = x.clone()
    changed[:, 1:] = randn(*changed[:, 1:].shape)

    before = ours.run(x, context, training=False).output
    after = ours(changed, context)

    assert_close(after[:, :1], before[:, :1], atol=1e-5, what="out[:, :1] when the later tokens of x change")


@claims(
    "Samples do not mix: changing one does not change the others.",
    look_at="whether the softmax, a reshape or the flags reach across samples",
    needs="lengths_are_free",
    cases=SMALL,
)
def test_samples_are_independent(attempt, sizes):
    ours = built(attempt, sizes)
    x, context = inputs(sizes)
    other_x, other_context = x.clone(), context.clone()
    other_x[0], other_context[0] = randn(sizes.Tq, sizes.E), randn(sizes.Tk, sizes.context_dim)
    keep = gaps(sizes)
    other_keep = keep.clone()
    other_keep[0] = ~keep[0]

    for flags, other_flags in (((), ()), ((keep,), (other_keep,))):
        before = ours.run(x, context, *flags, training=False).output
        after = ours(other_x, other_context, *other_flags)

        assert_close(after[1:], before[1:], atol=1e-5, what="out[1:] when sample 0 changes")


# ------------------------------------------------------------------------------------------------------ with keep


@claims(
    "With keep, the output is attention among the kept tokens alone, wherever they are.",
    look_at="what a hidden score becomes before the softmax, and what the other weights sum to",
    needs="lengths_are_free",
    cases=(
        *KEPT,
        SAME_LENGTH[0],
        Drawn(sized, B=(1, 4), H=(1, 4), Tq=(1, 30), Tk=(2, 30), D=(1, 24), context_dim=(1, 24)),
    ),
)
def test_values_with_keep(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x, context = inputs(sizes)

    for where, keep in (("first", kept_first(sizes)), ("among hidden ones", gaps(sizes))):
        out = ours.run(x, context, keep, training=False).output
        assert_close(out, theirs(x, context, keep), atol=1e-5, what=f"out with the kept tokens {where}: out")


@claims(
    "Scores far from 0, up to about 30 and -30, give the formula's values too, with keep and without.",
    look_at="whether anything limits the scores, and what hidden ones are filled with",
    needs=("values", "values_with_keep"),
    cases=SMALL[:1],
)
def test_strong_scores(attempt, reference, sizes):
    weights = some_weights(sizes)
    spread = {name: 6 * weight if name[0] in "qk" else weight for name, weight in weights.items()}
    first = torch.arange(sizes.E) % (sizes.E // sizes.H) == 0  # (E,): each head's feature that takes 30 off every score
    low = {name: weight.clone() for name, weight in weights.items()}
    low["q_proj.weight"][first], low["q_proj.bias"][first] = 0.0, -6 * (sizes.E // sizes.H) ** 0.5
    low["k_proj.weight"][first], low["k_proj.bias"][first] = 0.0, 5.0
    x, context = inputs(sizes)

    for strong, flags in ((spread, ()), (low, (kept_first(sizes),))):
        ours, theirs = pair(attempt, reference, sizes, weights=strong)
        out = ours.run(x, context, *flags, training=False).output
        # 1e-4, because with scores of 30 an attempt that computes in float32 loses two digits
        assert_close(out, theirs(x, context, *flags), atol=1e-4)


@claims(
    "Hidden context tokens do not change the output.",
    look_at="whether keep is read, and along which dimension it acts",
    needs="lengths_are_free",
    cases=SMALL,
)
def test_hidden_context_does_not_matter(attempt, sizes):
    ours = built(attempt, sizes)
    x, context = inputs(sizes)
    for keep in (kept_first(sizes), gaps(sizes)):
        before = ours.run(x, context, keep, training=False).output
        after = ours(x, torch.where(keep[:, :, None], context, randn(*context.shape)), keep)

        assert_close(after, before, atol=1e-5, what="out when hidden context changes: out")


@claims(
    "Every kept context token changes the output of every query.",
    look_at="whether True means kept or hidden",
    needs="lengths_are_free",
    cases=SMALL,
)
def test_kept_context_matters(attempt, sizes):
    ours = built(attempt, sizes)
    x, context = inputs(sizes)
    # Scores near 0, so that no weight is nearly 0, for any scale.
    x = x / 4
    keep = gaps(sizes)
    before = ours.run(x, context, keep, training=False).output
    for position in range(sizes.Tk):
        changed = context.clone()
        changed[:, position] += 3 * randn(sizes.context_dim)
        moved = (ours(x, changed, keep) - before).abs().amax(dim=-1)  # (B, Tq)
        for sample in keep[:, position].nonzero().flatten().tolist():
            unmoved = (~(moved[sample] > 1e-6)).nonzero().flatten().tolist()  # queries; NaN counts as not moved
            kept, out = f"context[{sample}, {position}]", f"out[{sample}, {str(unmoved[:1])[1:-1]}]"
            assert_holds(not unmoved, f"{kept} is kept and changes, but {out} stays as it was")


@claims(
    "The weights of the kept tokens sum to 1: if all context tokens are equal, the output is the same as for one of them.",
    look_at="whether the weights are normalised over the context, after hidden tokens lost their weight",
    needs="lengths_are_free",
    cases=KEPT[:3],
)
def test_weights_sum_to_one(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x, context = inputs(sizes)
    alike = context[:, :1].expand_as(context).contiguous()  # (B, Tk, context_dim)
    value = theirs(x, context[:, :1])  # (B, Tq, E)

    for flags in ((), (kept_first(sizes),)):
        out = ours.run(x, alike, *flags, training=False).output
        assert_close(out, value, atol=1e-5, what="out when all context tokens are equal: out")


@claims(
    "Each sample has its own flags, also where B equals H, Tq or Tk.",
    look_at="how (B, Tk) is aligned with (B, H, Tq, Tk)",
    needs="values",
    cases=EQUAL,
)
def test_flags_belong_to_their_sample(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x, context = inputs(sizes)
    keep = kept_first(sizes)

    out = ours.run(x, context, keep, training=False).output

    assert_close(out, theirs(x, context, keep), atol=1e-5)


# ------------------------------------------------------------------------------------------- true of every module


test_train_and_eval_agree = standard.train_and_eval_alike(module, needs="lengths_are_free", cases=SMALL[:1])
test_gradients = standard.gradients(
    module,
    claim="Gradients to x, context and every parameter are those of the definition.",
    calls=lambda sizes: [inputs(sizes)],
    needs="values",
    cases=SIZES[:3],
)
test_gradients_with_keep = standard.gradients(
    module,
    claim="With keep, gradients to x, context and every parameter are those of the definition.",
    calls=lambda sizes: [(*inputs(sizes), gaps(sizes))],
    needs="values_with_keep",
    cases=SMALL,
)
test_output_dtype = standard.output_dtype(module, needs="lengths_are_free", cases=SMALL[:1])
test_float32 = standard.float32(module, needs=("values", "values_with_keep"), cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(module, needs="lengths_are_free", cases=SMALL[:1])
test_non_contiguous_inputs = standard.non_contiguous_inputs(module, needs=("values", "values_with_keep"), cases=SMALL)
test_device = standard.device(module, needs="lengths_are_free", cases=SMALL[:1])


# ------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "A query with nothing to attend to gets exactly 0 from every head, with finite gradients.",
    tier="edge",
    look_at="what the softmax gives for a row whose keys are all masked",
    needs="values_with_keep",
    cases=SMALL,
)
def test_nothing_to_attend_to(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x, context = inputs(sizes)
    keep = kept_first(sizes)
    keep[1] = False  # only sample 1 keeps nothing

    result = ours.run(x, context, keep, cotangent=randn(sizes.B, sizes.Tq, sizes.E))

    what = "out of the sample without a kept token, expected o_proj.bias: out"
    assert_close(result.output[1], theirs(x, context, keep)[1], atol=1e-12, what=what)
    assert_close(result.output, theirs(x, context, keep), atol=1e-5)
    named = {**dict(zip(("x", "context"), result.input_gradients, strict=True)), **result.parameter_gradients}
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
    weights = random_weights(shapes(sizes), torch.float32)
    for name in ("q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias"):
        weights[name] = (3 * weights[name]).round()  # integers, as x and context: float32 scores are nearly exact
    ours = built(attempt, sizes, weights)
    theirs = built(reference, sizes, {name: weight.to(torch.float64) for name, weight in weights.items()})
    x, context = inputs(sizes)
    x, context = (300 * x).round(), (3 * context).round()
    keep = kept_first(sizes)

    larger = torch.where(keep[:, :, None], context, 10 * context)  # the largest scores may be hidden ones
    for given, flags in ((context, ()), (larger, (keep,))):
        out = ours(x.float(), given.float(), *flags)

        assert_close(out, theirs(x, given, *flags), atol=1e-2, rtol=1e-2, what="out")


test_half_precision = standard.half_precision(
    module, needs=("values", "values_with_keep"), cases=SMALL[:1], terms=lambda sizes: sizes.E
)
test_float64_throughout = standard.float64_throughout(module, needs=("values", "values_with_keep"), cases=SMALL)
test_own_memory = standard.own_memory(module, needs="lengths_are_free", cases=(SIZES[0], SIZES[3]))
