"""Hidden tests of mha: each tests one property of the contract in prompt.md."""

import functools
import math
from dataclasses import replace

import torch
from torch.nn import functional

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Drawn,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
    check_gradients,
    check_raises_value_error,
    claims,
    randn,
    random_weights,
    standard,
)


def sized(*, B, H, T, D, **words):
    return Sizes(B=B, H=H, T=T, E=H * D, D=D, **words)


SIZES = (
    sized(B=2, H=3, T=4, D=5),
    sized(B=3, H=2, T=5, D=7),
    sized(B=1, H=5, T=3, D=2),
    sized(B=2, H=1, T=3, D=6),
    sized(B=2, H=6, T=3, D=1),
    sized(B=3, H=2, T=1, D=5),
    sized(B=3, H=3, T=3, D=3),
    sized(B=1, H=2, T=130, D=3),
    sized(B=1, H=1, T=3, D=70),
)
EVERY = (*SIZES, Drawn(sized, B=(1, 4), H=(1, 4), T=(1, 30), D=(1, 24)))
SMALL = SIZES[:2]
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj")
MASKS = ("(T, T)", "(H, T, T)", "(B, 1, 1, T)", "(B, 1, T, T)", "(B, H, T, T)", "(1, 1, T, T)")

DROPOUT = tuple(sized(B=4, H=3, T=12, D=24, dropout=p, mask=mask) for p, mask in (("0.3", "none"), ("0.8", "causal")))
AXES = {1: "sample", 2: "head", 3: "query", 4: "key"}  # of the weights of several calls, (calls, B, H, T, T)
HARDLY = 1e-12  # dropout runs and drops nothing: a recorded call is made twice, and must give the same output twice
UNLIKELY = 1e-11  # the probability that bad luck fails a right attempt in one comparison
# Calls until one weight is dropped and another is not. With dropout=0.5 they are enough even if all weights share one draw.
TRIES = 40


def pair(attempt, reference, sizes, dtype=torch.float64, dropout=0.0):
    """The attempt's module and the reference's in float64, with the same weights, rounded to `dtype`.

    No score is far from 0.
    """
    weights = weights_of(sizes, dtype)
    weights["q_proj.weight"], weights["q_proj.bias"] = 0.5 * weights["q_proj.weight"], 0.5 * weights["q_proj.bias"]
    exact = {name: weight.double() for name, weight in weights.items()}
    return loaded(attempt, sizes, weights, dropout), loaded(reference, sizes, exact, dropout)


def loaded(handle, sizes, weights, dropout=0.0):
    """A module with these weights, of the attempt or the reference. A new module is in train()."""
    return handle.MultiHeadAttention.loaded(weights, sizes.E, sizes.H, dropout)


def weights_of(sizes, dtype=torch.float64, **replaced):
    """Random weights by name. `o_proj=(weight, bias)` replaces those of a layer."""
    weights = {}
    for name in LINEAR:
        weight, bias = replaced.get(name) or random_weights(_linear(sizes.E)).values()
        weights[f"{name}.weight"], weights[f"{name}.bias"] = weight.to(dtype), bias.to(dtype)
    return weights


def _linear(size):
    return {"weight": (size, size), "bias": (size,)}


def identity(sizes):
    """An o_proj that returns its input."""
    return torch.eye(sizes.E, dtype=torch.float64), torch.zeros(sizes.E, dtype=torch.float64)


def tokens(sizes):
    return randn(sizes.B, sizes.T, sizes.E)  # (B, T, E)


def mask_of(shape, sizes):
    """A partial mask of the shape that the words name. Every query keeps a key. If T > 1, some keys are masked."""
    named = {"B": sizes.B, "H": sizes.H, "T": sizes.T, "1": 1}
    mask = torch.rand([named[part] for part in shape.strip("()").split(", ")]) < 0.5
    if shape.endswith("1, T)"):  # the same keys for every query of a sample
        sample = torch.arange(sizes.B)
        mask[sample, 0, 0, sample % sizes.T - 1] = False
        mask[sample, 0, 0, sample % sizes.T] = True
        return mask
    return (mask | torch.eye(sizes.T, dtype=torch.bool)) & ~_beside(sizes.T)


def _beside(T):
    """(T, T), True at the key after the query's own position, and never at the query's own position."""
    return torch.eye(T, dtype=torch.bool).roll(1, dims=-1) & ~torch.eye(T, dtype=torch.bool)


def causal(sizes):
    return torch.ones(sizes.T, sizes.T, dtype=torch.bool).tril()  # (T, T)


module = standard.module(
    pair,
    lambda sizes: [(tokens(sizes),), (tokens(sizes), mask_of("(B, 1, T, T)", sizes))],
    inputs="x and mask",
    terms=lambda sizes: sizes.T * sizes.E,
    rows="token",
)
dropping = replace(module, pair=functools.partial(pair, dropout=0.5))
hardly_dropping = replace(module, pair=functools.partial(pair, dropout=HARDLY))


test_from_scratch = standard.from_scratch(hardly_dropping, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[7]))


# --------------------------------------------------------------------------------------------------- the module itself


@claims(
    "The parameters are q_proj, k_proj, v_proj and o_proj, each nn.Linear(E, E) with its bias, and no others.",
    look_at="the names and sizes of the layers",
    cases=SMALL[:1],
)
def test_parameters(attempt, sizes):
    for dropout in (0.0, 0.5):
        loaded(attempt, sizes, weights_of(sizes), dropout)


@claims(
    "A num_heads that does not divide embed_dim raises ValueError.",
    look_at="what the constructor does with the two sizes",
    cases=(Sizes(E=6, H=4), Sizes(E=10, H=3), Sizes(E=4, H=6)),
)
def test_heads_must_divide(attempt, sizes):
    check_raises_value_error(
        lambda: attempt.MultiHeadAttention(sizes.E, sizes.H)(randn(2, 3, sizes.E).float()),
        f"MultiHeadAttention({sizes.E}, {sizes.H})",
    )


@claims(
    "The output is one tensor of shape (B, T, E).",
    look_at="how the heads are merged",
    needs="parameters",
    cases=SIZES[:4],
)
def test_output_shape(attempt, sizes):
    out = loaded(attempt, sizes, weights_of(sizes))(tokens(sizes))

    assert_shape(out, (sizes.B, sizes.T, sizes.E))


test_alike_in_train_and_eval = standard.train_and_eval_alike(
    module,
    claim="With dropout=0.0 the module gives the same output in train() and in eval().",
    look_at="how the dropout probability of the constructor is used",
    calls=lambda sizes: [(tokens(sizes),)],
    needs="output_shape",
    cases=SMALL[:1],
)


# ----------------------------------------------------------------------------------------------------- without a mask


@claims(
    "Without a mask the output is o_proj of the heads' softmax(q kᵀ / sqrt(D)) v, side by side.",
    look_at="the scale, the dimension of the softmax, and how heads are split and merged",
    needs="alike_in_train_and_eval",
    cases=EVERY,
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)
    assert_close(ours(x), theirs(x), atol=1e-5, rows="token")
    if sizes not in SMALL:
        return  # that a second call is right, too, shows in any size
    what = "out of a second call, with mask=None: out"
    assert_close(ours(x.flip(1), None), theirs(x.flip(1), None), atol=1e-5, what=what, rows="token")


@claims(
    "Scores far from 0, up to about 30 and -30, give the definition's values too.",
    look_at="whether anything limits the scores, or is added to the sum of the weights",
    needs="values",
    cases=SMALL[:1],
)
def test_strong_scores(attempt, reference, sizes):
    weights = weights_of(sizes)
    weights["q_proj.weight"], weights["q_proj.bias"] = 10 * weights["q_proj.weight"], 10 * weights["q_proj.bias"]
    x = tokens(sizes)

    out = loaded(attempt, sizes, weights)(x)
    right = loaded(reference, sizes, weights)(x)

    # 1e-4, because with scores of 30 an attempt that computes in float32 loses two digits
    assert_close(out, right, atol=1e-4, rows="token")


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
    "Head h owns columns h*D to (h+1)*D: changing its rows of q_proj, k_proj and v_proj changes these columns only.",
    look_at="the two steps of the split, and of the merge",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_heads_own_columns(attempt, sizes):
    weights = weights_of(sizes, o_proj=identity(sizes))
    x = tokens(sizes)
    before = loaded(attempt, sizes, weights)(x)
    for head in (0, sizes.H - 1):
        own = torch.arange(sizes.E) // sizes.D == head  # (E,)
        other = weights_of(sizes, o_proj=identity(sizes))
        for name in weights:
            if not name.startswith("o_proj"):
                other[name] = torch.where(own if name.endswith("bias") else own[:, None], other[name], weights[name])
        after = loaded(attempt, sizes, other)(x)

        what = f"columns of the other heads, when head {head} changes: out"
        assert_close(after[..., ~own], before[..., ~own], atol=1e-5, what=what, rows="token")
        moved = (after - before)[..., own].abs().amax()
        assert_holds(bool(moved > 1e-2), f"changing head {head}'s weights changes nothing in its own columns")


@claims(
    "Samples do not mix: changing one does not change the others.",
    look_at="whether a reshape or the softmax reaches across the batch",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_samples_are_independent(attempt, sizes):
    module = loaded(attempt, sizes, weights_of(sizes))
    x = tokens(sizes)
    changed = torch.cat([tokens(sizes)[:1], x[1:]])

    before, after = module(x), module(changed)

    assert_close(after[1:], before[1:], atol=1e-5, what="out of the others when sample 0 changes: out", rows="token")


@claims(
    "Tokens have no order: swapping tokens of x swaps the same tokens of the output.",
    look_at="whether a reshape mixes tokens, and whether tokens are masked without a mask",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_tokens_have_no_order(attempt, sizes):
    module = loaded(attempt, sizes, weights_of(sizes))
    x = tokens(sizes)
    order = torch.arange(sizes.T).roll(1)

    straight, exchanged = module(x), module(x[:, order])

    what = "out of swapped tokens, put back in order: out"
    assert_close(exchanged, straight[:, order], atol=1e-5, what=what, rows="token")


@claims(
    "Each query's weights sum to 1, with and without a mask.",
    look_at="which dimension of the scores the softmax normalises, and whether the mask comes before it",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_weights_sum_to_one(attempt, sizes):
    zeros, ones = torch.zeros(sizes.E, sizes.E), torch.ones(sizes.E)
    # Every value is 1 and o_proj changes nothing, so the output is the sum of the weights.
    module = loaded(attempt, sizes, weights_of(sizes, v_proj=(zeros, ones), o_proj=identity(sizes)))
    x = tokens(sizes)

    for mask in (None, mask_of("(T, T)", sizes), mask_of("(B, 1, 1, T)", sizes)):
        total = module(x, mask)
        what = f"the sum of a query's weights, {'without' if mask is None else 'with'} a mask: out"
        assert_close(total, torch.ones_like(total), atol=1e-5, what=what, rows="token")


# -------------------------------------------------------------------------------------------------------- with a mask


@claims(
    "A mask that is True everywhere changes nothing.",
    look_at="what True means",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_all_true_mask(attempt, sizes):
    module = loaded(attempt, sizes, weights_of(sizes))
    x = tokens(sizes)

    without = module(x)
    for shape in ((sizes.T, sizes.T), (sizes.B, 1, 1, sizes.T)):
        allowed = module(x, torch.ones(shape, dtype=torch.bool))
        assert_close(allowed, without, atol=1e-5, what="out with a mask that is True everywhere: out", rows="token")


@claims(
    "A key that is masked for every query does not change the output of other queries. A key that is kept does.",
    look_at="what True means, which dimension of the mask is keys, and whether the masked weights are 0",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_masked_keys_do_not_matter(attempt, sizes):
    module = loaded(attempt, sizes, weights_of(sizes))
    x = tokens(sizes)
    keep = torch.ones(sizes.B, 1, 1, sizes.T, dtype=torch.bool)
    keep[..., 1] = False
    others = torch.arange(sizes.T) > 1  # their queries, and their keys

    before = module(x, keep)[:, others]
    for place, masked in ((1, True), (0, False)):
        changed = x.clone()
        changed[:, place] = randn(sizes.B, sizes.E)
        after = module(changed, keep)[:, others]
        if masked:
            what = f"out[:, 2:] when token {place}, masked as a key, changes: out"
            assert_close(after, before, atol=1e-5, what=what, rows="token")
        else:
            moved = (after - before).abs().amax()
            assert_holds(bool(moved > 1e-3), f"out[:, 2:] stays the same when token {place}, kept as a key, changes")


@claims(
    "With a (T, T) mask the output is attention among the keys that each query may attend to.",
    look_at="what True means, which dimension is keys, and where in the pipeline the mask acts",
    needs="values",
    cases=(SIZES[0], SIZES[5], SIZES[7], EVERY[-1]),
)
def test_mask(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)
    masks = {
        "a causal mask": causal(sizes),
        "a random mask": mask_of("(T, T)", sizes),
    }
    if sizes in SMALL:
        masks["one key for each query"] = torch.eye(sizes.T, dtype=torch.bool).roll(1, dims=-1)
        masks["no mask, after calls with one"] = None

    for kind, mask in masks.items():
        assert_close(ours(x, mask), theirs(x, mask), atol=1e-5, what=f"out with {kind}: out", rows="token")


@claims(
    "A mask of any shape that broadcasts to (B, H, T, T) is used as it is.",
    look_at="dimensions that you add to the mask, or mix up",
    needs="mask",
    # All sizes different; all equal, where one mask can be taken for another; B and H above T, where a mask may be cut.
    cases=(SIZES[0], SIZES[6], sized(B=5, H=4, T=3, D=2)),
)
def test_mask_broadcasts(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)

    for shape in MASKS:
        mask = mask_of(shape, sizes)
        assert_close(ours(x, mask), theirs(x, mask), atol=1e-5, what=f"out with a mask of {shape}: out", rows="token")


# ---------------------------------------------------------------------------------------------------------- gradients


test_gradients = standard.gradients(
    module,
    claim="Gradients to x and to every parameter are those of the definition.",
    calls=lambda sizes: [(tokens(sizes),)],
    needs="values",
    cases=SMALL[:1],
)
test_gradients_with_mask = standard.gradients(
    module,
    claim="With a mask the gradients are those of the definition too.",
    look_at="how the masked weights become 0",
    calls=lambda sizes: [(tokens(sizes), mask) for mask in (causal(sizes), mask_of("(B, 1, 1, T)", sizes))],
    needs=("mask", "gradients"),
    cases=SMALL[:1],
)


# ------------------------------------------------------------------------------------------------------------ dropout


@claims(
    "By default there is no dropout.",
    look_at="the signature of the constructor",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_no_dropout_by_default(attempt, sizes):
    weights = weights_of(sizes)
    x = tokens(sizes)
    default = attempt.MultiHeadAttention(sizes.E, sizes.H)
    default.load(weights)

    out = default.run(x, training=True).output
    expected = loaded(attempt, sizes, weights).run(x, training=True).output

    assert_close(out, expected, atol=1e-5, what="out in train(), built without dropout: out", rows="token")


@claims(
    "In eval() dropout does nothing.",
    look_at="how dropout knows whether the module is training",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_no_dropout_in_eval(attempt, sizes):
    weights = weights_of(sizes)
    x = tokens(sizes)
    without = loaded(attempt, sizes, weights, 0.0).run(x, training=False).output
    module = loaded(attempt, sizes, weights, 0.5)

    for mode in (False, True, False, False):  # one call in train() between the others
        out = module.run(x, training=mode, seed=seed() if mode else None).output
        if not mode:
            assert_close(out, without, atol=1e-5, what="out in eval(), with dropout=0.5: out", rows="token")


@claims(
    "In train() some weights are dropped: the output differs from that without dropout.",
    look_at="whether the weights that reach the output have gone through dropout",
    needs="alike_in_train_and_eval",
    cases=(sized(B=2, H=3, T=4, D=5, dropout="0.5"),),
)
def test_something_is_dropped(attempt, sizes):
    weights, other = weights_of(sizes), weights_of(sizes)
    x = tokens(sizes)

    without = loaded(attempt, sizes, weights)(x)
    module = loaded(attempt, sizes, weights, float(sizes.dropout))
    for call in range(TRIES):
        if not near(module.run(x, training=True, seed=None if call else seed()).output, without):
            return
    changed = {name: (other if name.startswith(("q_", "k_")) else weights)[name] for name in weights}
    attends = not near(loaded(attempt, sizes, changed)(x), without)
    unseen = (
        "the output in train() is that without dropout, and does not depend on q_proj and k_proj: it shows no weights"
    )
    assert_holds(attends, unseen)
    assert_holds(False, "nothing is dropped: the output in train() is that without dropout")


@claims(
    "In train() a query's weights sum to 1 only on average: after dropout they are not normalised again.",
    look_at="what happens to the weights after some were dropped",
    needs="something_is_dropped",
    cases=(sized(B=9, H=3, T=11, D=4, dropout="0.5"),),  # T odd: half of the weights are not half of the sum
)
def test_what_is_dropped_is_missing(attempt, sizes):
    ones = torch.zeros(sizes.E, sizes.E), torch.ones(sizes.E)
    # All queries, keys and values are 1, so the output is the sum of the weights.
    module = loaded(attempt, sizes, weights_of(sizes, **same_layers(sizes, ones)), float(sizes.dropout))
    total = module.run(tokens(sizes), training=True, seed=seed()).output

    # If all weights of a query were dropped, dividing by their sum gives NaN, or 0 if something was added to the sum.
    told = total[total.abs() > 1e-6]
    if told.numel() and near(told, torch.ones_like(told)):
        zeros = "some are 0" if some_weights_are_zero(attempt, sizes) else "none is 0"
        assert_holds(False, f"each query's weights sum to 1 in train(), and {zeros}, with dropout={sizes.dropout}")


def same_layers(sizes, layer):
    """q_proj, k_proj and v_proj with the same weights, and an o_proj that changes nothing."""
    return {"q_proj": layer, "k_proj": layer, "v_proj": layer, "o_proj": identity(sizes)}


def some_weights_are_zero(attempt, sizes):
    """Whether dropout makes the weights of one query 0, and not those of another.

    Only one token's values are not 0, so that the output is its weights. A dropped value is lost for all queries.
    """
    first = torch.zeros(sizes.E, sizes.E)
    first[:, 0] = 1  # every column is feature 0 of x
    layers = same_layers(sizes, (first, torch.zeros(sizes.E)))
    weights = weights_of(sizes, **layers)
    module = loaded(attempt, sizes, weights, float(sizes.dropout))
    x = tokens(sizes)
    x[..., 0] = 0
    x[0, 1, 0] = 1
    seen = loaded(attempt, sizes, weights)(x).abs() > 1e-6  # (B, T, E)
    for call in range(4):
        zero = seen & (module.run(x, training=True, seed=None if call else seed()).output == 0)
        if bool((zero.any((1, 2)) & (seen & ~zero).any((1, 2))).any()):
            return True
    return False


class Readable:
    """Modules whose output is their weights: every token's value is its own place among the T, twice over, and o_proj
    changes nothing. So D = 2 T, and twice, so that a dropped weight and a dropped number of the output look different."""

    def __init__(self, attempt, sizes):
        T, E = sizes.T, sizes.E
        self.sizes, self.p = sizes, float(sizes.dropout)
        places = torch.zeros(E, E, dtype=torch.float64)
        places[torch.arange(E), torch.arange(E) % T] = 1  # column c of v is feature c % T of x
        self.parameters = weights_of(sizes, v_proj=(places, torch.zeros(E)), o_proj=identity(sizes))
        self.parameters["q_proj.weight"] /= 2  # so that no weight is too small to be told from a dropped one
        self.x = tokens(sizes)
        self.x[..., :T] = torch.eye(T, dtype=torch.float64)
        self.mask = causal(sizes) if sizes.mask == "causal" else None
        self.module = loaded(attempt, sizes, self.parameters, self.p)
        in_eval = self.read(self.module.run(self.x, self.mask, training=False).output)
        assert_holds(bool(in_eval.isfinite().all()), "some weights are nan or infinite already in eval()")
        readable = near(in_eval[0], in_eval[1])
        assert_holds(readable, "one weight gives two numbers already in eval(): the values of the heads are mixed")
        seen = bool((in_eval[0] > 0).all()) or self.mask is not None
        assert_holds(seen, "some weights are 0 already in eval(), without a mask")
        self.undropped = in_eval[0]  # the attempt's own weights, so that dropout can be judged where they are wrong too

    def read(self, output):
        """(B, T, E) -> the weights, each read twice: (2, B, H, T, T)."""
        s = self.sizes
        return output.reshape(s.B, s.T, s.H, 2, s.T).permute(3, 0, 2, 1, 4)

    def train(self, calls):
        """The weights of `calls` calls in train(). The first call is seeded: (calls, 2, B, H, T, T)."""
        outputs = []
        for call in range(calls):
            out = self.module.run(self.x, self.mask, training=True, seed=None if call else seed()).output
            assert_shape(out, tuple(self.x.shape), what="the output in train()")
            outputs.append(self.read(out))
        return torch.stack(outputs)

    def train_until_mixed(self):
        """The weights of enough calls to see dropped and kept weights, or of TRIES calls: (2, calls, B, H, T, T).

        One call is usually enough. If many weights share a draw, a call may drop all of them, or none.
        """
        seen = self.train(calls=1)
        while len(seen) < TRIES and near(seen, self.undropped * (seen.mean() / self.undropped.mean())):
            seen = torch.cat([seen, self.train(calls=1)])
        return seen.movedim(1, 0)

    def kept(self, weights):
        """Which weights are not dropped: (…, B, H, T, T)."""
        return weights.abs() > self.undropped / 2


def seed():
    return int(torch.randint(1 << 31, ()))


def luck(count, tries=1):
    """The largest distance of a share of `count` draws from its probability. Among `tries` shares, more is UNLIKELY.

    Hoeffding: P(|share - expected| >= t) <= 2 exp(-2 count t²).
    """
    return math.sqrt(math.log(2 * tries / UNLIKELY) / (2 * count))


def drawn(kept, axes):
    """`kept` with one entry along each axis of `axes` on which all entries agree, so that a shared draw counts once."""
    for axis in axes:
        first = kept.narrow(axis, 0, 1)
        kept = first if bool((kept == first).all()) else kept
    return kept


@claims(
    "In train() each weight after the softmax is either 0 or its value in eval() divided by 1 - dropout.",
    look_at="what dropout is applied to, and what happens to the weights afterwards",
    needs=("no_dropout_in_eval", "something_is_dropped", "heads_own_columns"),
    cases=DROPOUT,
)
def test_dropout_acts_on_weights(attempt, sizes):
    readable = Readable(attempt, sizes)
    once, again = weights = readable.train_until_mixed()  # each (calls, B, H, T, T)
    in_eval = readable.undropped
    kept = readable.kept(once)

    assert_holds(not near(once, in_eval), "nothing is dropped: the weights in train() are those in eval()")
    lost = once == 0  # where numbers of v are dropped, the same for every query
    where = "for all queries the same" if bool((lost == lost[..., :1, :]).all()) else "for each query others"
    apart = f"of two numbers that one weight multiplies, one is dropped and not the other, {where}"
    assert_holds(near(once, again), apart)
    for dim, whose in NORMALISED_FOR.items():
        if dim == -1 or near(in_eval.sum(dim), torch.ones(())):  # a softmax along another dimension is another mistake
            told = f"the weights differ from those in eval(), {what_is_zero(once, in_eval, dim, whose)}"
            assert_holds(not near(once.sum(dim), torch.ones(())), told)
    scaled = "not divided by 1 - dropout: the weights that are kept in train() are those in eval()"
    assert_holds(not near(once, kept * in_eval), scaled)
    expected = kept * in_eval / (1 - readable.p)
    what = "the weight in train(): weight"
    assert_close(weights, expected.expand_as(weights), atol=1e-5, what=what, rows="query", columns="key")


NORMALISED_FOR = {
    -1: "query",
    -2: "key",
    -3: "place (query, key) over all heads",
    -4: "place (query, key) over all samples",
}


def what_is_zero(weights, in_eval, dim, whose):
    """Words for weights that still sum to 1 along `dim`. Scores of 0 give several weights of the same size."""
    if bool(((weights == 0) & (in_eval > 0)).any()):
        return f"and those of each {whose} still sum to 1"
    steps, before = (part.sort(dim=dim).values.diff(dim=dim) for part in (weights, in_eval))  # one less along dim
    alike = (steps < 1e-9).any(dim) & (before > 1e-6).all(dim)
    several = f"but several of one {whose} are alike" if bool(alike.any()) else "and they differ"
    return f"none is 0, {several}: those of each {whose} still sum to 1"


def near(actual, expected):
    """Whether two tensors are equal up to 1e-6. Rounding in float32 changes less than that."""
    return bool(((actual - expected).abs() <= 1e-6).all())


@claims(
    "In train() each weight is dropped with probability dropout.",
    look_at="how the dropout probability of the constructor is used",
    needs="dropout_acts_on_weights",
    cases=DROPOUT[:1],
)
def test_dropout_rate(attempt, sizes):
    readable = Readable(attempt, sizes)
    dropped = 1 - drawn(readable.kept(readable.train(calls=4)[:, 0]), (0, *AXES)).double()  # (4, B, H, T, T)

    share, count = float(dropped.mean()), dropped.numel()
    told = f"of {count} weights were dropped, with dropout={readable.p}"
    assert_holds(abs(share - readable.p) <= luck(count), f"{share:.3f} {told}")
    for axis, name in AXES.items():
        parts = dropped.movedim(axis, 0).flatten(1)  # one row for each sample, or head, ...
        far = (parts.mean(1) - readable.p).abs()
        place, count = int(far.argmax()), parts.shape[1]
        told = f"of {count} weights of {name} {place} were dropped, with dropout={readable.p}"
        assert_holds(float(far.max()) <= luck(count, tries=len(parts)), f"{parts[place].mean():.3f} {told}")


@claims(
    "Each weight is dropped independently, for every sample, head, query and key.",
    look_at="the shape of the random numbers that dropout draws",
    needs="dropout_acts_on_weights",
    cases=(sized(B=4, H=3, T=12, D=24, dropout="0.5", mask="none"),),
)
def test_dropout_is_independent(attempt, sizes):
    readable = Readable(attempt, sizes)
    kept = drawn(readable.kept(readable.train(calls=3)[:, 0]), axes=[0])  # (3, B, H, T, T)

    seen = []
    for axis, name in AXES.items():
        rows = kept.movedim(axis, 0).flatten(1).double()  # one row for each sample, or head, ...
        alike = (rows @ rows.T + (1 - rows) @ (1 - rows).T) / rows.shape[1]  # in what share of places two rows agree
        by_chance = torch.where(torch.eye(len(rows), dtype=torch.bool), 0.5, alike) - 0.5
        farthest = max(float(by_chance.max()), float(by_chance.min()), key=abs)
        seen.append((abs(farthest), luck(rows.shape[1], tries=len(rows) ** 2), 0.5 + farthest, name, len(rows)))
    seen.sort(key=lambda one: (-one[0], -one[2]))  # of equal ones the first in AXES
    for distance, limit, share, name, count in seen:
        several = f"{count} {'queries' if name == 'query' else name + 's'}"
        told = f"two of the {several} drop the same in {share:.0%} of the places, with dropout=0.5"
        assert_holds(distance <= limit, told)
    counts = kept.sum(-1)  # (3, B, H, T)
    assert_holds(bool((counts != counts.flatten()[0]).any()), "every query has the same number of weights dropped")


@claims(
    "Each call draws again which weights are dropped.",
    look_at="when the random numbers are drawn",
    needs="dropout_acts_on_weights",
    cases=(sized(B=4, H=3, T=12, D=24, dropout="0.5", mask="none"),),
)
def test_dropout_is_fresh(attempt, sizes):
    readable = Readable(attempt, sizes)
    kept = drawn(readable.kept(readable.train(calls=3)[:, 0]), AXES).flatten(1)  # (3, B H T T)

    for first, second in ((0, 1), (1, 2), (0, 2)):
        share = float((kept[first] == kept[second]).double().mean())
        assert_holds(
            share <= 0.5 + luck(kept.shape[1], tries=3),
            f"calls {first + 1} and {second + 1} drop the same weights in {share:.0%} of the places, with dropout=0.5",
        )


@claims(
    "With dropout the gradients are those of the weights that were kept.",
    look_at="whether autograd sees the dropout",
    needs=("gradients", "dropout_acts_on_weights"),
    cases=(sized(B=2, H=3, T=4, D=8, dropout="0.5", mask="none"),),
)
def test_gradients_in_train(attempt, reference, sizes):
    readable = Readable(attempt, sizes)
    x = readable.x
    cotangent = randn(*x.shape)
    result = readable.module.run(x, cotangent=cotangent, training=True, seed=seed())
    kept = readable.kept(readable.read(result.output)[0]) / (1 - readable.p)  # (B, H, T, T)

    leaves = {"x": x, **readable.parameters}
    leaves = {name: leaf.clone().requires_grad_() for name, leaf in leaves.items()}
    right = torch.autograd.grad((_with_dropout(leaves, kept, sizes) * cotangent).sum(), list(leaves.values()))
    got = {"x": result.input_gradients[0], **result.parameter_gradients}

    for name, wanted in zip(leaves, right, strict=True):
        gradient = got[name] if got[name] is not None else torch.zeros_like(wanted)
        what = f"the gradient of {name} in train(): grad"
        assert_close(gradient, wanted, atol=1e-5, what=what, rows="row", columns="column")


def _with_dropout(leaves, kept, sizes):
    """The definition, with `kept` (B, H, T, T) in place of dropout."""
    q, k, v = (
        functional.linear(leaves["x"], leaves[f"{name}.weight"], leaves[f"{name}.bias"])
        .unflatten(-1, (sizes.H, sizes.D))
        .transpose(1, 2)
        for name in LINEAR[:3]
    )
    heads = (q @ k.transpose(-2, -1) / math.sqrt(sizes.D)).softmax(-1) * kept @ v
    return functional.linear(heads.transpose(1, 2).flatten(2), leaves["o_proj.weight"], leaves["o_proj.bias"])


# ----------------------------------------------------------------------------------------- true of every kata, core


test_output_dtype = standard.output_dtype(dropping, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(module, needs="mask", cases=SMALL[:1])
test_inputs_unmodified = standard.inputs_unmodified(dropping, needs="output_shape", cases=SMALL[:1])
test_non_contiguous_inputs = standard.non_contiguous_inputs(module, needs="mask", cases=SMALL[:1])
test_device = standard.device(hardly_dropping, needs="output_shape", cases=SMALL[:1])


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
    cases=(sized(B=2, H=3, T=5, D=16),),
    look_at="exp of a large number, and what a masked score becomes",
)
def test_large_scores(attempt, reference, sizes):
    # Integers, and D = 16, whose root is 4, so that float32 holds every score exactly.
    whole = [(torch.randint(-7, 8, (sizes.E, sizes.E)).double(), torch.zeros(sizes.E)) for _ in range(2)]
    weights = weights_of(sizes, torch.float32, q_proj=whole[0], k_proj=whole[1])
    ours = loaded(attempt, sizes, weights)
    theirs = loaded(reference, sizes, {name: weight.double() for name, weight in weights.items()})
    x = torch.randint(-7, 8, (sizes.B, sizes.T, sizes.E)).double()
    q, k = ((x @ weight.T).unflatten(-1, (sizes.H, sizes.D)).transpose(1, 2) for weight, _ in whole)
    lowest = (q @ k.transpose(-2, -1)).argmin(-1, keepdim=True)  # (B, H, T, 1)
    low = torch.zeros(sizes.B, sizes.H, sizes.T, sizes.T, dtype=torch.bool).scatter_(-1, lowest, True)

    for mask in (None, causal(sizes), low):  # low: the kept score lies far below the masked ones
        out = ours(x.float(), mask)
        assert_close(out, theirs(x, mask), atol=1e-3, rows="token")


test_half_precision = standard.half_precision(module, needs="mask", cases=SMALL[:1])
test_float64_throughout = standard.float64_throughout(module, needs="mask", cases=SMALL[:1])
test_own_memory = standard.own_memory(module, needs="output_shape", cases=(SIZES[0], SIZES[5]))
