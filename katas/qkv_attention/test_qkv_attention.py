"""Hidden tests of qkv_attention: each tests one property of the contract in prompt.md."""

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


def sized(*, B, H, Tq, Tk, D, **words):
    return Sizes(B=B, H=H, Tq=Tq, Tk=Tk, E=H * D, D=D, **words)


SIZES = (
    sized(B=2, H=3, Tq=4, Tk=5, D=6),
    sized(B=3, H=2, Tq=6, Tk=4, D=5),
    sized(B=1, H=5, Tq=3, Tk=4, D=2),
    sized(B=2, H=1, Tq=5, Tk=3, D=7),
    sized(B=2, H=6, Tq=3, Tk=4, D=1),
    sized(B=3, H=2, Tq=1, Tk=5, D=4),
    sized(B=4, H=2, Tq=3, Tk=1, D=5),
    sized(B=3, H=3, Tq=3, Tk=3, D=3),
    sized(B=1, H=2, Tq=131, Tk=4, D=3),
    sized(B=2, H=2, Tq=3, Tk=150, D=70),
    Drawn(sized, B=(1, 4), H=(1, 4), Tq=(1, 40), Tk=(1, 40), D=(1, 24)),
)
SMALL = SIZES[:2]
DRAWN = SIZES[-1:]
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj")
MASKS = ("(Tq, Tk)", "(H, Tq, Tk)", "(B, 1, 1, Tk)", "(B, 1, Tq, Tk)", "(B, H, Tq, Tk)", "(1, 1, Tq, Tk)", "(Tq, 1)")

DROPOUT = tuple(sized(B=4, H=3, Tq=6, Tk=7, D=14, dropout=p) for p in ("0.3", "0.8"))  # D = 2 Tk: see Readable
AXES = {1: "samples", 2: "heads", 3: "queries", 4: "keys"}  # of the weights of several calls, (calls, B, H, Tq, Tk)
HARDLY = 1e-12  # dropout runs and drops nothing: a recorded call is made twice, and must give the same output twice
UNLIKELY = 1e-11  # the probability that bad luck fails a right attempt in one comparison
TRIES = 40  # calls until one weight is dropped and another is not, even if all of them share one draw


def pair(attempt, reference, sizes, dtype=torch.float64, dropout=0.0):
    """The attempt's module and the reference's in float64, with the same weights, rounded to `dtype`."""
    weights = weights_of(sizes, dtype)
    weights["q_proj.weight"], weights["q_proj.bias"] = 0.5 * weights["q_proj.weight"], 0.5 * weights["q_proj.bias"]
    exact = {name: weight.double() for name, weight in weights.items()}
    return loaded(attempt, sizes, weights, dropout), loaded(reference, sizes, exact, dropout)


def loaded(handle, sizes, weights, dropout=0.0):
    """A module with these weights, of the attempt or the reference. A new module is in train()."""
    return handle.MultiHeadAttention.loaded(weights, sizes.E, sizes.H, dropout)


def weights_of(sizes, dtype=torch.float64, **replaced):
    """Random weights by name. `o_proj=(weight, bias)` replaces those of a layer."""
    E = sizes.E
    weights = random_weights(
        {f"{name}.{part}": shape for name in LINEAR for part, shape in (("weight", (E, E)), ("bias", (E,)))}
    )
    for name, (weight, bias) in replaced.items():
        weights[f"{name}.weight"], weights[f"{name}.bias"] = weight, bias
    return {name: weight.to(dtype) for name, weight in weights.items()}


def inputs(sizes):
    """query (B, Tq, E), key (B, Tk, E), value (B, Tk, E)."""
    return randn(sizes.B, sizes.Tq, sizes.E), randn(sizes.B, sizes.Tk, sizes.E), randn(sizes.B, sizes.Tk, sizes.E)


def mask_of(shape, sizes):
    """A partial mask of the shape that the words name. Every query keeps a key."""
    named = {"B": sizes.B, "H": sizes.H, "Tq": sizes.Tq, "Tk": sizes.Tk, "1": 1}
    mask = torch.rand([named[part] for part in shape.strip("()").split(", ")]) < 0.5
    if shape.endswith("1)"):
        return torch.ones_like(mask)
    first = torch.arange(mask.shape[-2])[:, None] % sizes.Tk == torch.arange(sizes.Tk)  # one kept key for each row
    return mask | first


module = standard.module(
    pair,
    lambda sizes: [inputs(sizes), (*inputs(sizes), mask_of("(B, 1, Tq, Tk)", sizes))],
    inputs="query, key, value and mask",
    terms=lambda sizes: sizes.Tk * sizes.E,
    axes={"weights": ("query", "key")},
    differentiated=("out",),
)
without_mask = replace(module, calls=lambda sizes: [inputs(sizes)])
dropping = replace(module, pair=functools.partial(pair, dropout=0.5))
hardly_dropping = replace(module, pair=functools.partial(pair, dropout=HARDLY))


test_from_scratch = standard.from_scratch(hardly_dropping, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[9]))


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
    x = randn(2, 3, sizes.E).float()
    check_raises_value_error(
        lambda: attempt.MultiHeadAttention(sizes.E, sizes.H)(x, x, x), f"MultiHeadAttention({sizes.E}, {sizes.H})"
    )


@claims(
    "The result is (out, weights), and out has the shape (B, Tq, E).",
    look_at="which lengths are the queries' and which the keys'",
    needs="parameters",
    cases=SIZES[:7],
)
def test_output_shape(attempt, sizes):
    out, _ = loaded(attempt, sizes, weights_of(sizes))(*inputs(sizes))

    assert_shape(out, (sizes.B, sizes.Tq, sizes.E), what="out")


@claims(
    "weights have the shape (B, H, Tq, Tk).",
    look_at="what happens to the dimension of the heads",
    needs="output_shape",
    cases=SIZES[:7],
)
def test_weights_shape(attempt, sizes):
    _, weights = loaded(attempt, sizes, weights_of(sizes))(*inputs(sizes))

    assert_shape(weights, (sizes.B, sizes.H, sizes.Tq, sizes.Tk), what="weights")


test_alike_in_train_and_eval = standard.train_and_eval_alike(
    without_mask,
    claim="With dropout=0.0 the module gives the same results in train() and in eval().",
    look_at="how the dropout probability of the constructor is used",
    needs="output_shape",
    cases=SMALL[:1],
)


# ----------------------------------------------------------------------------------------------------------- values


@claims(
    "Without a mask, out is o_proj of the heads' softmax(q kᵀ / sqrt(D)) v, side by side.",
    look_at="which input goes through which layer, the scale, the dimension of the softmax, and how heads are split and merged",
    needs="alike_in_train_and_eval",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    given = inputs(sizes)

    assert_close(ours(*given)[0], theirs(*given)[0], atol=1e-5)
    # A second call must be right too. The queries come in reverse order.
    other = (given[0].flip(1), *given[1:], None)
    assert_close(ours(*other)[0], theirs(*other)[0], atol=1e-5, what="out of a second call, with mask=None: out")


@claims(
    "weights are those of every head, after the softmax: not averaged over heads.",
    look_at="which tensor you return, and from which line",
    needs=("alike_in_train_and_eval", "weights_shape"),
    cases=(*SIZES[:4], *SIZES[7:]),
)
def test_weights(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    for mask in (None, mask_of("(B, 1, Tq, Tk)", sizes)):
        given = inputs(sizes)
        what = f"weights {'without' if mask is None else 'with'} a mask: weights"
        assert_close(ours(*given, mask)[1], theirs(*given, mask)[1], atol=1e-5, what=what, columns="key")


@claims(
    "Scores far from 0, up to about 30 and -30, give the definition's values too.",
    look_at="whether anything limits the scores, or is added to the sum of the weights",
    needs=("values", "weights"),
    cases=SMALL[:1],
)
def test_strong_scores(attempt, reference, sizes):
    weights = weights_of(sizes)
    weights["q_proj.weight"], weights["q_proj.bias"] = 10 * weights["q_proj.weight"], 10 * weights["q_proj.bias"]
    given = inputs(sizes)

    result = loaded(attempt, sizes, weights).run(*given)
    right = loaded(reference, sizes, weights).run(*given)

    # 1e-4, because with scores of 30 an attempt that computes in float32 loses two digits
    module.close(result, right, atol=1e-4)


@claims(
    "One module takes any batch size and any lengths, call after call.",
    look_at="what the module stores from one call to the next",
    needs="values",
    cases=SMALL[:1],
)
def test_sizes_may_change(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)

    for B, Tq, Tk in ((2, 4, 5), (2, 7, 3), (5, 2, 4), (1, 1, 1), (2, 4, 5)):
        given = inputs(sized(B=B, H=sizes.H, Tq=Tq, Tk=Tk, D=sizes.D))
        what = f"out for B={B}, Tq={Tq}, Tk={Tk}: out"
        assert_close(ours(*given)[0], theirs(*given)[0], atol=1e-5, what=what)


@claims(
    "Head h owns columns h*D to (h+1)*D: changing its rows of q_proj, k_proj and v_proj changes these columns only.",
    look_at="the two steps of the split, and of the merge",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_heads_own_columns(attempt, sizes):
    same = torch.eye(sizes.E, dtype=torch.float64), torch.zeros(sizes.E)
    weights, given = weights_of(sizes, o_proj=same), inputs(sizes)
    before = loaded(attempt, sizes, weights)(*given)[0]
    for head in (0, sizes.H - 1):
        own = torch.arange(sizes.E) // sizes.D == head  # (E,)
        other = weights_of(sizes, o_proj=same)
        for name in weights:
            if not name.startswith("o_proj"):
                other[name] = torch.where(own if name.endswith("bias") else own[:, None], other[name], weights[name])
        after = loaded(attempt, sizes, other)(*given)[0]

        what = f"columns of the other heads, when head {head} changes: out"
        assert_close(after[..., ~own], before[..., ~own], atol=1e-5, what=what)


# ------------------------------------------------------------------------------------------------------------- mask


@claims(
    "A mask that is True everywhere changes nothing.",
    look_at="what True means",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_all_true_mask(attempt, sizes):
    ours = loaded(attempt, sizes, weights_of(sizes))
    given = inputs(sizes)

    without = ours.run(*given)
    for shape in ((sizes.Tq, sizes.Tk), (sizes.B, 1, 1, sizes.Tk)):
        allowed = ours.run(*given, torch.ones(shape, dtype=torch.bool))
        module.close(allowed, without, atol=1e-5, what="out with a mask that is True everywhere: out")


@claims(
    "With a (Tq, Tk) mask, out is attention among the keys that each query may attend to.",
    look_at="what True means, which dimension is keys, and where in the pipeline the mask acts",
    needs="values",
    cases=(SIZES[0], SIZES[5], SIZES[8], *DRAWN),
)
def test_mask(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    given = inputs(sizes)
    one_key = torch.arange(sizes.Tq)[:, None] % sizes.Tk == torch.arange(sizes.Tk)
    masks = {
        "a random mask": mask_of("(Tq, Tk)", sizes),
        "one key for each query": one_key,
        "no mask, after calls with one": None,
    }

    for kind, mask in masks.items():
        assert_close(ours(*given, mask)[0], theirs(*given, mask)[0], atol=1e-5, what=f"out with {kind}: out")


@claims(
    "A mask of any shape that broadcasts to (B, H, Tq, Tk) is used as it is.",
    look_at="dimensions that you add to the mask, or mix up",
    needs="mask",
    cases=(SIZES[0], SIZES[7]),  # all sizes different; then all equal, where one shape of mask can be taken for another
)
def test_mask_broadcasts(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    given = inputs(sizes)

    for shape in MASKS:
        mask = mask_of(shape, sizes)
        assert_close(ours(*given, mask)[0], theirs(*given, mask)[0], atol=1e-5, what=f"out with a mask of {shape}: out")


# -------------------------------------------------------------------------------------------------------- gradients


test_gradients = standard.gradients(
    without_mask,
    claim="Gradients of out to the inputs and to every parameter are those of the definition.",
    needs="values",
    cases=SMALL[:1],
)
test_gradients_with_mask = standard.gradients(
    module,
    claim="With a mask the gradients of out are those of the definition too.",
    look_at="how the masked weights become 0",
    calls=lambda sizes: [(*inputs(sizes), mask_of("(B, 1, 1, Tk)", sizes))],
    needs=("mask", "gradients"),
    cases=SMALL[:1],
)


# ---------------------------------------------------------------------------------------------------------- dropout


@claims(
    "In eval() dropout does nothing.",
    look_at="how dropout knows whether the module is training",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_no_dropout_in_eval(attempt, sizes):
    weights, given = weights_of(sizes), inputs(sizes)
    without = loaded(attempt, sizes, weights, 0.0).run(*given, training=False)
    dropping = loaded(attempt, sizes, weights, 0.5)

    for mode in (False, True, False, False):  # one call in train() between the others
        result = dropping.run(*given, training=mode, seed=seed() if mode else None)
        if not mode:
            module.close(result, without, atol=1e-5, what="out in eval(), with dropout=0.5: out")


@claims(
    "By default there is no dropout.",
    look_at="the signature of the constructor",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_no_dropout_by_default(attempt, sizes):
    weights, given = weights_of(sizes), inputs(sizes)
    default = attempt.MultiHeadAttention(sizes.E, sizes.H)
    default.load(weights)

    expected = loaded(attempt, sizes, weights).run(*given, training=True)
    module.close(
        default.run(*given, training=True), expected, atol=1e-5, what="out in train(), built without dropout: out"
    )


@claims(
    "In train(), too, the returned weights are those before dropout.",
    look_at="whether the tensor that you return has gone through dropout",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_weights_before_dropout(attempt, sizes):
    given, parameters = inputs(sizes), weights_of(sizes)
    dropping = loaded(attempt, sizes, parameters, 0.5)
    in_eval = loaded(attempt, sizes, parameters, 0.0).run(*given, training=False).parts["weights"]

    for _ in range(4):
        in_train = dropping.run(*given, training=True).parts["weights"]
        if in_train.shape == in_eval.shape:
            lost = bool(((in_train == 0) & (in_eval != 0)).any())
            assert_holds(not lost, "among the weights in train() are 0 that are not 0 in eval()")
        assert_close(
            in_train, in_eval, atol=1e-5, what="weights in train(), compared with eval(): weights", columns="key"
        )


@claims(
    "In train() some weights are dropped: out differs from that without dropout.",
    look_at="whether the weights that reach out have gone through dropout",
    needs="no_dropout_in_eval",
    cases=(sized(B=2, H=3, Tq=4, Tk=5, D=5, dropout="0.5"),),
)
def test_something_is_dropped(attempt, sizes):
    weights, given = weights_of(sizes), inputs(sizes)
    without = loaded(attempt, sizes, weights)(*given)[0]
    dropping = loaded(attempt, sizes, weights, float(sizes.dropout))
    query, key, value = given
    other = loaded(attempt, sizes, weights)(query, key, 2 * value)[0]

    assert_holds(not near(other, without), "out is the same with another value, so no weights reach it")
    dropped = (not near(dropping.run(*given, training=True).output, without) for _ in range(TRIES))
    assert_holds(any(dropped), "nothing is dropped: out in train() is that without dropout")


class Readable:
    """Modules whose out shows the weights that reached the values, each twice, so that a dropped weight and a dropped number
    of the output look different: D = 2 Tk, and value j is 1 in the columns j and Tk + j of every head."""

    def __init__(self, attempt, sizes):
        E, D, Tk = sizes.E, sizes.D, sizes.Tk
        self.sizes, self.p = sizes, float(sizes.dropout)
        places = torch.zeros(E, E, dtype=torch.float64)
        places[torch.arange(E), torch.arange(E) % D] = 1  # column c of v is feature c % D of value
        eye = torch.eye(E, dtype=torch.float64)
        self.parameters = weights_of(sizes, v_proj=(places, torch.zeros(E)), o_proj=(eye, torch.zeros(E)))
        self.parameters["q_proj.weight"] /= 2  # so that no weight is too small to be told from a dropped one
        query, key, value = inputs(sizes)
        value = torch.zeros_like(value)
        value[:, torch.arange(Tk), torch.arange(Tk)] = 1
        value[:, torch.arange(Tk), torch.arange(Tk) + Tk] = 1
        self.given = query, key, value
        self.module = loaded(attempt, sizes, self.parameters, self.p)
        first, second = self.read(self.module.run(*self.given, training=False).output)
        readable = near(first, second) and bool((first > 0).all())
        assert_holds(
            readable, "already in eval() the output does not show the weights: the values of the heads are mixed"
        )
        self.undropped = first  # the attempt's own weights, so that dropout can be judged where they are wrong too

    def read(self, output):
        """(B, Tq, E) -> the weights, each read twice: (2, B, H, Tq, Tk)."""
        s = self.sizes
        assert_shape(output, (s.B, s.Tq, s.E), what="out in train()")
        return output.reshape(s.B, s.Tq, s.H, 2, s.Tk).permute(3, 0, 2, 1, 4)

    def train(self, calls):
        """The weights of `calls` calls in train(). The first call is seeded: (2, calls, B, H, Tq, Tk)."""
        runs = (self.module.run(*self.given, training=True, seed=None if call else seed()) for call in range(calls))
        return torch.stack([self.read(run.output) for run in runs], dim=1)

    def kept(self, calls):
        """Which weights are not dropped in each of `calls` calls: (calls, B, H, Tq, Tk)."""
        return self.train(calls)[0].abs() > self.undropped / 2


def seed():
    return int(torch.randint(1 << 31, ()))


def near(actual, expected):
    """Whether two tensors are equal up to 1e-6. Rounding in float32 changes less than that."""
    return bool(((actual - expected).abs() <= 1e-6).all())


def luck(count, tries=1):
    """The largest distance of a share of `count` draws from its probability. Among `tries` shares, more is UNLIKELY.

    Hoeffding: P(|share - expected| >= t) <= 2 exp(-2 count t²).
    """
    return math.sqrt(math.log(2 * tries / UNLIKELY) / (2 * count))


@claims(
    "In train() each weight after the softmax is either 0 or its value in eval() divided by 1 - dropout.",
    look_at="what dropout is applied to, and what happens to the weights afterwards",
    needs=("no_dropout_in_eval", "something_is_dropped", "heads_own_columns"),
    cases=DROPOUT,
)
def test_dropout_acts_on_weights(attempt, sizes):
    readable = Readable(attempt, sizes)
    in_eval = readable.undropped
    seen = readable.train(calls=1)
    while seen.shape[1] < TRIES and near(seen, in_eval * (seen.mean() / in_eval.mean())):
        seen = torch.cat([seen, readable.train(calls=1)], dim=1)
    once, again = seen  # each (calls, B, H, Tq, Tk)
    kept = once.abs() > in_eval / 2

    lost = once == 0
    where = "for all queries the same" if bool((lost == lost[..., :1, :]).all()) else "for each query others"
    told = f"of two numbers that one weight multiplies, one is dropped and not the other, {where}"
    assert_holds(near(once, again), told)
    if near(once.sum(-1), torch.ones_like(once[..., 0])):
        zeros = "some are 0" if bool(lost.any()) else "none is 0"
        assert_holds(False, f"each query's weights sum to 1 in train(), and {zeros}, with dropout={sizes.dropout}")
    scaled = "not divided by 1 - dropout: the weights that are kept in train() are those in eval()"
    assert_holds(not near(once, kept * in_eval), scaled)
    expected = (kept * in_eval / (1 - readable.p)).expand_as(seen)
    assert_close(seen, expected, atol=1e-5, what="the weight in train(): weight", columns="key")


@claims(
    "In train() each weight is dropped with probability dropout, independently for every sample, head, query and key.",
    look_at="how the probability is used, and the shape of the random numbers that dropout draws",
    needs="dropout_acts_on_weights",
    cases=(*DROPOUT, sized(B=4, H=3, Tq=6, Tk=7, D=14, dropout="0.5")),
)
def test_dropout_is_independent(attempt, sizes):
    kept = Readable(attempt, sizes).kept(calls=4).double()  # (4, B, H, Tq, Tk)
    p = float(sizes.dropout)

    for axis, name in AXES.items():
        rows = kept.movedim(axis, 0).flatten(1)  # one row for each sample, or head, ...
        if bool((rows == rows[:1]).all()):
            assert_holds(False, f"two of the {len(rows)} {name} drop the same in 100% of the places, with dropout={p}")
    share = 1 - float(kept.mean())
    told = f"{share:.3f} of {kept.numel()} weights were dropped, with dropout={p}"
    assert_holds(abs(share - p) <= luck(kept.numel()), told)
    alike = p * p + (1 - p) * (1 - p)
    for axis, name in AXES.items():
        rows = kept.movedim(axis, 0).flatten(1)
        same = (rows @ rows.T + (1 - rows) @ (1 - rows).T) / rows.shape[1]  # in what share of places two rows agree
        far = (same - alike).abs().masked_fill(torch.eye(len(rows), dtype=torch.bool), 0.0)
        told = f"two of the {len(rows)} {name} drop the same in {float(same.flatten()[far.argmax()]):.0%} of the places"
        assert_holds(float(far.max()) <= luck(rows.shape[1], tries=len(rows) ** 2), f"{told}, with dropout={p}")
    counts = kept.sum(-1)  # (4, B, H, Tq)
    assert_holds(bool((counts != counts.flatten()[0]).any()), "every query has the same number of weights dropped")


@claims(
    "Each call draws again which weights are dropped.",
    look_at="when the random numbers are drawn",
    needs="dropout_acts_on_weights",
    cases=(sized(B=4, H=3, Tq=6, Tk=7, D=14, dropout="0.5"),),
)
def test_dropout_is_fresh(attempt, sizes):
    kept = Readable(attempt, sizes).kept(calls=3).flatten(1)  # (3, B H Tq Tk)

    for first, second in ((0, 1), (1, 2), (0, 2)):
        share = float((kept[first] == kept[second]).double().mean())
        told = (
            f"calls {first + 1} and {second + 1} drop the same weights in {share:.0%} of the places, with dropout=0.5"
        )
        assert_holds(share <= 0.5 + luck(kept.shape[1], tries=3), told)


@claims(
    "With dropout the gradients are those of the weights that were kept.",
    look_at="whether autograd sees the dropout",
    needs=("gradients", "dropout_acts_on_weights"),
    cases=(sized(B=2, H=3, Tq=4, Tk=3, D=6, dropout="0.5"),),
)
def test_gradients_in_train(attempt, sizes):
    readable = Readable(attempt, sizes)
    cotangent = randn(sizes.B, sizes.Tq, sizes.E)
    result = readable.module.run(*readable.given, cotangent={"out": cotangent}, training=True, seed=seed())
    kept = (readable.read(result.output)[0].abs() > readable.undropped / 2) / (1 - readable.p)  # (B, H, Tq, Tk)

    leaves = dict(zip(("query", "key", "value"), readable.given, strict=True)) | readable.parameters
    leaves = {name: leaf.clone().requires_grad_() for name, leaf in leaves.items()}
    right = torch.autograd.grad((_with_dropout(leaves, kept, sizes) * cotangent).sum(), list(leaves.values()))
    got = dict(zip(leaves, result.input_gradients, strict=False)) | result.parameter_gradients

    for name, wanted in zip(leaves, right, strict=True):
        gradient = got[name] if got[name] is not None else torch.zeros_like(wanted)
        what = f"the gradient of {name} in train(): grad"
        assert_close(gradient, wanted, atol=1e-5, what=what, rows="row", columns="column")


def _with_dropout(leaves, kept, sizes):
    """The definition, with `kept` (B, H, Tq, Tk) in place of dropout."""
    q, k, v = (
        functional.linear(leaves[source], leaves[f"{name}.weight"], leaves[f"{name}.bias"])
        .unflatten(-1, (sizes.H, sizes.D))
        .transpose(1, 2)
        for source, name in zip(("query", "key", "value"), LINEAR, strict=False)
    )
    heads = (q @ k.transpose(-2, -1) / math.sqrt(sizes.D)).softmax(-1) * kept @ v
    return functional.linear(heads.transpose(1, 2).flatten(2), leaves["o_proj.weight"], leaves["o_proj.bias"])


# ----------------------------------------------------------------------------------------- true of every kata, core


test_output_dtype = standard.output_dtype(dropping, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(module, needs=("mask", "weights"), cases=SMALL[:1])
test_inputs_unmodified = standard.inputs_unmodified(dropping, needs="output_shape", cases=SMALL[:1])
test_non_contiguous_inputs = standard.non_contiguous_inputs(module, needs=("mask", "weights"), cases=SMALL[:1])
test_device = standard.device(hardly_dropping, needs="output_shape", cases=SMALL[:1])


# --------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "A query with nothing to attend to gets exactly 0 from every head and weights of 0, with finite gradients.",
    tier="edge",
    needs=("gradients_with_mask", "weights"),
    cases=SMALL[:1],
    look_at="what the softmax gives for a row in which everything is masked",
)
def test_empty_rows(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    given = inputs(sizes)
    mask = torch.ones(sizes.B, 1, sizes.Tq, sizes.Tk, dtype=torch.bool)
    mask[0] = False  # a sample of padding alone
    mask[1:, :, 1] = False  # and one query of each other sample

    module.close(ours.run(*given, mask), theirs.run(*given, mask), atol=1e-5)
    check_gradients(ours, theirs, *given, mask, of=("out",))


@claims(
    "The gradients of weights are those of the definition.",
    tier="edge",
    needs="weights",
    cases=SMALL[:1],
    look_at="whether the weights are detached before they are returned",
)
def test_gradients_of_weights(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)

    check_gradients(ours, theirs, *inputs(sizes), of=("weights",))


@claims(
    "Scores of about 1e4 in float32 give finite, right results, masked keys included.",
    tier="edge",
    needs=("mask", "weights"),
    cases=(sized(B=2, H=3, Tq=4, Tk=5, D=16),),
    look_at="exp of a large number, and what a masked score becomes",
)
def test_large_scores(attempt, reference, sizes):
    # Integers, and D = 16, whose root is 4, so that float32 holds every score exactly.
    whole = [(torch.randint(-7, 8, (sizes.E, sizes.E)).double(), torch.zeros(sizes.E)) for _ in range(2)]
    weights = weights_of(sizes, torch.float32, q_proj=whole[0], k_proj=whole[1])
    ours = loaded(attempt, sizes, weights)
    theirs = loaded(reference, sizes, {name: weight.double() for name, weight in weights.items()})
    query, key = (torch.randint(-7, 8, (sizes.B, T, sizes.E)).double() for T in (sizes.Tq, sizes.Tk))
    value = randn(sizes.B, sizes.Tk, sizes.E, dtype=torch.float32)
    q, k = (
        (x @ w.T).unflatten(-1, (sizes.H, sizes.D)).transpose(1, 2)
        for x, (w, _) in zip((query, key), whole, strict=True)
    )
    lowest = (q @ k.transpose(-2, -1)).argmin(-1, keepdim=True)  # (B, H, Tq, 1)
    low = torch.zeros(sizes.B, sizes.H, sizes.Tq, sizes.Tk, dtype=torch.bool).scatter_(-1, lowest, True)

    for mask in (None, mask_of("(Tq, Tk)", sizes), low):  # low: the kept score lies far below the masked ones
        result = ours.run(query.float(), key.float(), value, mask)
        module.close(result, theirs.run(query, key, value.double(), mask), atol=1e-3)


test_half_precision = standard.half_precision(module, needs=("mask", "weights"), cases=SMALL[:1])
test_float64_throughout = standard.float64_throughout(module, needs=("mask", "weights"), cases=SMALL[:1])
test_own_memory = standard.own_memory(module, needs="output_shape", cases=SIZES[:1])
