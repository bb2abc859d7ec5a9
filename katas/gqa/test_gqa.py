"""Hidden tests of gqa: each tests one property of the contract in prompt.md."""

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
    check_gradients,
    check_raises_value_error,
    claims,
    randn,
    random_weights,
    standard,
)


def sized(*, B, H, G, T, D):
    return Sizes(B=B, H=H, G=G, T=T, E=H * D, D=D)


def grouped(*, B, G, each, T, D):
    return sized(B=B, H=G * each, G=G, T=T, D=D)


SIZES = (
    sized(B=2, H=4, G=2, T=3, D=5),
    sized(B=3, H=6, G=2, T=5, D=4),
    sized(B=2, H=6, G=3, T=4, D=7),
    sized(B=2, H=3, G=1, T=4, D=5),
    sized(B=2, H=3, G=3, T=5, D=4),
    sized(B=1, H=4, G=2, T=3, D=1),
    sized(B=3, H=1, G=1, T=4, D=6),
    sized(B=2, H=8, G=2, T=1, D=3),
    sized(B=4, H=4, G=2, T=4, D=4),
    sized(B=1, H=4, G=2, T=3, D=67),
    sized(B=1, H=9, G=3, T=133, D=2),
    Drawn(grouped, B=(1, 3), G=(1, 3), each=(1, 3), T=(1, 30), D=(1, 30)),
)
SMALL = SIZES[:2]
MASKS = ("T T", "H T T", "B 1 1 T", "B 1 T T", "B H T T", "1 1 T T")


def pair(attempt, reference, sizes, dtype=torch.float64):
    """The attempt's module and the reference's, with the same random weights."""
    build = sizes.E, sizes.H, sizes.G
    return build_pair(attempt, reference, "GroupedQueryAttention", *build, dtype=dtype)


def loaded(attempt, sizes, **replaced):
    """The attempt's module with random weights. `o_proj=(weight, bias)` replaces those of a layer."""
    weights = weights_of(sizes)
    for name, (weight, bias) in replaced.items():
        weights[f"{name}.weight"], weights[f"{name}.bias"] = weight.double(), bias.double()
    return attempt.GroupedQueryAttention.loaded(weights, sizes.E, sizes.H, sizes.G)


def weights_of(sizes):
    rows = {"q_proj": sizes.E, "k_proj": sizes.G * sizes.D, "v_proj": sizes.G * sizes.D, "o_proj": sizes.E}
    shapes = {f"{name}.weight": (count, sizes.E) for name, count in rows.items()}
    return random_weights({**shapes, **{f"{name}.bias": (count,) for name, count in rows.items()}})


def identity(sizes):
    """An o_proj that returns its input."""
    return torch.eye(sizes.E), torch.zeros(sizes.E)


def tokens(sizes):
    return randn(sizes.B, sizes.T, sizes.E)  # (B, T, E)


def mask_of(shape, sizes):
    """A random mask of the shape that the words name. Every query keeps a key; if T > 1, keys are masked."""
    named = {"B": sizes.B, "H": sizes.H, "T": sizes.T, "1": 1}
    mask = torch.rand([named[part] for part in shape.split()]) < 0.5
    own, beside = torch.arange(sizes.T), torch.arange(sizes.T).roll(1)
    if shape.endswith("1 T"):  # the same keys for every query of a sample
        own, beside = torch.arange(sizes.B) % sizes.T, (torch.arange(sizes.B) + 1) % sizes.T
        mask[range(sizes.B), 0, 0, beside], mask[range(sizes.B), 0, 0, own] = False, True
        return mask
    mask[..., torch.arange(sizes.T), beside] = False
    mask[..., torch.arange(sizes.T), own] = True
    return mask


def causal(sizes):
    return torch.ones(sizes.T, sizes.T, dtype=torch.bool).tril()  # (T, T)


module = standard.module(
    pair,
    lambda sizes: [(tokens(sizes),), (tokens(sizes), mask_of("B 1 T T", sizes))],
    inputs="x and mask",
    terms=lambda sizes: sizes.T * sizes.E,
    rows="token",
)
test_from_scratch = standard.from_scratch(module, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[10]))


# --------------------------------------------------------------------------------------------------- the module itself


@claims(
    "The parameters are those of q_proj and o_proj, nn.Linear(E, E), and of k_proj and v_proj, nn.Linear(E, G * D).",
    look_at="the names and sizes of the layers",
    cases=SIZES[:5],
)
def test_parameters(attempt, reference, sizes):
    pair(attempt, reference, sizes)


@claims(
    "A num_heads that does not divide embed_dim raises ValueError, and so does a num_kv_heads that does not divide num_heads.",
    look_at="what the constructor does with the three sizes",
    cases=(Sizes(E=6, H=4, G=2), Sizes(E=10, H=3, G=1), Sizes(E=12, H=6, G=4), Sizes(E=12, H=2, G=4)),
)
def test_heads_must_divide(attempt, sizes):
    check_raises_value_error(
        lambda: attempt.GroupedQueryAttention(sizes.E, sizes.H, sizes.G)(randn(2, 3, sizes.E).float()),
        f"GroupedQueryAttention({sizes.E}, {sizes.H}, {sizes.G})",
    )


@claims(
    "The output is one tensor of shape (B, T, E).",
    look_at="how many heads k and v have where they meet q, and how the heads are merged",
    needs="parameters",
    cases=SIZES[:8],
)
def test_output_shape(attempt, sizes):
    assert_shape(loaded(attempt, sizes)(tokens(sizes)), (sizes.B, sizes.T, sizes.E))


test_train_and_eval_alike = standard.train_and_eval_alike(module, needs="output_shape", cases=SMALL[:1])


# ----------------------------------------------------------------------------------------------------- without a mask


@claims(
    "Without a mask the output is o_proj of the query heads' softmax(q kᵀ / sqrt(D)) v, side by side.",
    look_at="which key-value head a query head reads, the scale, and how heads are split and merged",
    needs="train_and_eval_alike",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)

    assert_close(ours(x), theirs(x), atol=1e-5, rows="token")
    # A second call must be right too. The tokens come in reverse order.
    what = "out of a second call, with mask=None: out"
    assert_close(ours(x.flip(1), None), theirs(x.flip(1), None), atol=1e-5, what=what, rows="token")
    strong = 6 * x  # scores up to about 30: 1e-4, because an attempt in float32 loses two digits
    assert_close(ours(strong), theirs(strong), atol=1e-4, what="out with strong scores: out", rows="token")


@claims(
    "One module takes any batch size and any length, call after call.",
    look_at="what the module stores from one call to the next",
    needs="values",
    cases=SMALL[:1],
)
def test_sizes_may_change(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)

    for B, T in ((sizes.B, sizes.T), (sizes.B, sizes.T + 3), (sizes.B + 2, 2), (1, 1), (sizes.B, sizes.T)):
        x = randn(B, T, sizes.E)
        assert_close(ours(x), theirs(x), atol=1e-5, what=f"out for B={B}, T={T}: out", rows="token")


@claims(
    "Neighbouring query heads share a key-value head: its rows of k_proj and v_proj change their columns, and no others.",
    look_at="in which order k and v are repeated, or queries grouped",
    needs="train_and_eval_alike",
    cases=SIZES[:3],
)
def test_neighbours_share_a_key_value_head(attempt, sizes):
    x, weights = tokens(sizes), weights_of(sizes)
    weights["o_proj.weight"], weights["o_proj.bias"] = (part.double() for part in identity(sizes))
    build = sizes.E, sizes.H, sizes.G
    before = attempt.GroupedQueryAttention.loaded(weights, *build)(x)
    for group in range(sizes.G):
        rows = torch.arange(sizes.G * sizes.D) // sizes.D == group  # (G D,)
        columns = torch.arange(sizes.E) // sizes.D // (sizes.H // sizes.G) == group  # (E,)
        for names in (("k_proj.weight", "v_proj.weight"), ("v_proj.weight",)):
            changed = {name: w + 0.7 * rows[:, None] if name in names else w for name, w in weights.items()}
            after = attempt.GroupedQueryAttention.loaded(changed, *build)(x)

            what = f"columns of the other groups, when key-value head {group} changes: out"
            assert_close(after[..., ~columns], before[..., ~columns], atol=1e-5, what=what, rows="token")
            for head in range(sizes.H):
                own = torch.arange(sizes.E) // sizes.D == head
                moved = bool(not columns[own].any() or (after - before)[..., own].abs().amax() > 1e-3)
                assert_holds(moved, f"key-value head {group} changes, and the columns of query head {head} do not")


@claims(
    "Samples do not mix, and tokens have no order: changing one sample does not change the others, and swapping tokens of x "
    "swaps those of the output.",
    look_at="whether a reshape or the softmax reaches across samples or tokens",
    needs="train_and_eval_alike",
    cases=SMALL[:1],
)
def test_samples_and_tokens(attempt, sizes):
    module = loaded(attempt, sizes)
    x = tokens(sizes)
    before = module(x)
    after = module(torch.cat([tokens(sizes)[:1], x[1:]]))
    turned = module(x.roll(1, dims=1))

    assert_close(after[1:], before[1:], atol=1e-5, what="out of the others when sample 0 changes: out", rows="token")
    assert_close(turned.roll(-1, dims=1), before, atol=1e-5, what="out of swapped tokens, put back: out", rows="token")


@claims(
    "Each query's weights sum to 1, with and without a mask.",
    look_at="which dimension of the scores the softmax normalises, and whether the mask comes before it",
    needs="train_and_eval_alike",
    cases=SMALL[:1],
)
def test_weights_sum_to_one(attempt, sizes):
    width = sizes.G * sizes.D
    # Every value is 1 and o_proj changes nothing, so the output is the sum of the weights.
    module = loaded(attempt, sizes, v_proj=(torch.zeros(width, sizes.E), torch.ones(width)), o_proj=identity(sizes))
    x = tokens(sizes)

    for mask in (None, mask_of("T T", sizes), mask_of("B 1 1 T", sizes)):
        total = module(x, mask)
        what = f"the sum of a query's weights, {'without' if mask is None else 'with'} a mask: out"
        assert_close(total, torch.ones_like(total), atol=1e-5, what=what, rows="token")


# -------------------------------------------------------------------------------------------------------- with a mask


@claims(
    "A mask that is True everywhere changes nothing.",
    look_at="what True means",
    needs="train_and_eval_alike",
    cases=SMALL[:1],
)
def test_all_true_mask(attempt, sizes):
    module = loaded(attempt, sizes)
    x = tokens(sizes)
    allowed = module(x, torch.ones(sizes.T, sizes.T, dtype=torch.bool))

    assert_close(allowed, module(x), atol=1e-5, what="out with a mask that is True everywhere: out", rows="token")


@claims(
    "A key that is masked for every query does not change the output of other queries. A key that is kept does.",
    look_at="what True means, which dimension of the mask is keys, and whether the masked weights are 0",
    needs="train_and_eval_alike",
    cases=SMALL[:1],
)
def test_masked_keys_do_not_matter(attempt, sizes):
    module = loaded(attempt, sizes)
    x = tokens(sizes)
    keep = torch.ones(sizes.B, 1, 1, sizes.T, dtype=torch.bool)
    keep[..., 1] = False
    before = module(x, keep)[:, 2:]
    for place in (1, 0):
        changed = x.clone()
        changed[:, place] = randn(sizes.B, sizes.E)
        after = module(changed, keep)[:, 2:]
        if place == 1:
            what = "out[:, 2:] when token 1, masked as a key, changes: out"
            assert_close(after, before, atol=1e-5, what=what, rows="token")
        else:
            moved = bool((after - before).abs().amax() > 1e-3)
            assert_holds(moved, "out[:, 2:] stays the same when token 0, kept as a key, changes")


@claims(
    "With a (T, T) mask the output is attention among the keys that each query may attend to.",
    look_at="what True means, which dimension is keys, and where in the pipeline the mask acts",
    needs="values",
    cases=(SIZES[0], SIZES[7], *SIZES[10:]),
)
def test_mask(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)
    masks = {
        "a causal mask": causal(sizes),
        "a random mask": mask_of("T T", sizes),
        "no mask, after calls with one": None,
    }

    for kind, mask in masks.items():
        assert_close(ours(x, mask), theirs(x, mask), atol=1e-5, what=f"out with {kind}: out", rows="token")


@claims(
    "A mask of any shape that broadcasts to (B, H, T, T) is used as it is: each query head has its own part.",
    look_at="dimensions that you add to the mask, or mix up, and how its heads meet your groups",
    needs="mask",
    cases=(
        SIZES[1],
        SIZES[8],
    ),  # all sizes different; then equal ones, where one shape of mask can be taken for another
)
def test_mask_broadcasts(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)

    for shape in MASKS:
        mask = mask_of(shape, sizes)
        what = f"out with a mask of ({shape.replace(' ', ', ')}): out"
        assert_close(ours(x, mask), theirs(x, mask), atol=1e-5, what=what, rows="token")


# ---------------------------------------------------------------------------------------------- true of every kata, core


test_gradients = standard.gradients(
    module,
    claim="Gradients to x and to every parameter are those of the definition.",
    calls=lambda sizes: [(tokens(sizes),)],
    needs="values",
    cases=(SIZES[0], SIZES[2]),
)
test_gradients_with_mask = standard.gradients(
    module,
    claim="With a mask the gradients are those of the definition too.",
    look_at="how the masked weights become 0",
    calls=lambda sizes: [(tokens(sizes), causal(sizes))],
    needs=("mask", "gradients"),
    cases=SMALL[:1],
)
test_output_dtype = standard.output_dtype(module, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(module, needs="mask", cases=SMALL[:1])
test_inputs_unmodified = standard.inputs_unmodified(module, needs="output_shape", cases=SMALL[:1])
test_non_contiguous_inputs = standard.non_contiguous_inputs(module, needs="mask", cases=SMALL[:1])
test_device = standard.device(module, needs="output_shape", cases=SMALL[:1])


# ---------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "A query with nothing to attend to gets exactly 0 from every head, with finite gradients.",
    tier="edge",
    needs="gradients_with_mask",
    cases=SMALL[:1],
    look_at="what the softmax gives for a row in which everything is masked",
)
def test_empty_rows(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)
    mask = torch.ones(sizes.B, 1, sizes.T, sizes.T, dtype=torch.bool)
    mask[0] = False  # a sample of padding alone
    mask[1:, :, 1] = False  # and one query of each other sample

    assert_close(ours(x, mask), theirs(x, mask), atol=1e-5, rows="token")
    check_gradients(ours, theirs, x, mask)


@claims(
    "Scores of about 1e4 in float32 give finite, right results, masked keys included.",
    tier="edge",
    needs="mask",
    cases=(sized(B=2, H=4, G=2, T=5, D=16),),
    look_at="exp of a large number, and what a masked score becomes",
)
def test_large_scores(attempt, reference, sizes):
    # Integers, and D = 16, whose root is 4, so that float32 holds every score exactly.
    weights = {name: weight.float() for name, weight in weights_of(sizes).items()}
    for name in ("q_proj", "k_proj"):
        weights[f"{name}.weight"] = torch.randint(-7, 8, weights[f"{name}.weight"].shape).float()
        weights[f"{name}.bias"] = torch.zeros_like(weights[f"{name}.bias"])
    build = sizes.E, sizes.H, sizes.G
    ours = attempt.GroupedQueryAttention.loaded(weights, *build)
    theirs = reference.GroupedQueryAttention.loaded({name: part.double() for name, part in weights.items()}, *build)
    x = torch.randint(-7, 8, (sizes.B, sizes.T, sizes.E)).double()
    q = (x @ weights["q_proj.weight"].double().T).unflatten(-1, (sizes.H, sizes.D)).transpose(1, 2)
    k = (x @ weights["k_proj.weight"].double().T).unflatten(-1, (sizes.G, sizes.D)).transpose(1, 2)
    scores = q @ k.repeat_interleave(sizes.H // sizes.G, dim=1).transpose(-2, -1)
    low = torch.zeros_like(scores, dtype=torch.bool).scatter_(-1, scores.argmin(-1, keepdim=True), True)

    for mask in (None, causal(sizes), low):  # low: the kept score lies far below the masked ones
        assert_close(ours(x.float(), mask), theirs(x, mask), atol=1e-3, rows="token")


@claims(
    "No tensor holds each key or value once for every query head of its group.",
    tier="edge",
    needs="values",
    cases=(sized(B=2, H=8, G=2, T=12, D=5),),
    look_at="what repeats keys and values, also inside a product that broadcasts",
)
def test_keys_not_copied(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    x = tokens(sizes)
    largest, products = ours.run(x, measure=True).cost.largest, ours.run(x, record=True).recording.products
    for samples in (sizes.B, 1):  # all together, or one by one
        heads = samples * sizes.H * sizes.T
        keys = {(heads * sizes.D, heads * sizes.D), (heads * sizes.T, heads * sizes.D)}  # q kᵀ, and weights v
        for name, operands in products:
            counts = tuple(math.prod(operand) for operand in operands if operand)
            copied = bool(keys & {counts, counts[::-1]})
            assert_holds(
                not copied, f"{name.split('::')[-1]} multiplies {' by '.join(map(str, operands))}: one for each head"
            )
    entries = sizes.B * sizes.H * sizes.T * sizes.T * sizes.D
    assert_holds(largest < entries, f"a tensor of {largest} elements is made: each key, for every query of every head")


test_half_precision = standard.half_precision(module, needs="mask", cases=SMALL[:1])
test_float64_throughout = standard.float64_throughout(module, needs="mask", cases=SMALL[:1])
test_own_memory = standard.own_memory(module, needs="output_shape", cases=(SIZES[0], SIZES[7]))
