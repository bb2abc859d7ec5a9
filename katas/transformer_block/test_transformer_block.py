"""Hidden tests of transformer_block: each tests one property of the contract in prompt.md."""

import functools
import math
from dataclasses import replace

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
    randn,
    random_weights,
    standard,
)


def sized(*, B, H, T, D, M, **words):
    return Sizes(B=B, H=H, T=T, E=H * D, D=D, M=M, **words)


SIZES = (
    sized(B=2, H=3, T=4, D=5, M=7),
    sized(B=3, H=2, T=5, D=7, M=20),
    sized(B=1, H=5, T=3, D=2, M=9),
    sized(B=2, H=1, T=3, D=6, M=4),
    sized(B=2, H=6, T=3, D=1, M=5),
    sized(B=3, H=2, T=1, D=5, M=6),
    sized(B=2, H=2, T=4, D=3, M=1),
    sized(B=2, H=1, T=3, D=1, M=4),
    sized(B=3, H=3, T=3, D=3, M=9),
    sized(B=1, H=1, T=3, D=66, M=70),
    sized(B=1, H=2, T=130, D=3, M=5),
    Drawn(sized, B=(1, 3), H=(1, 4), T=(1, 30), D=(1, 20), M=(1, 80)),
)
SMALL = SIZES[:2]
HARDLY = 1e-12  # dropout runs and drops nothing: a recorded call is made twice, and must give the same output twice
UNLIKELY = 1e-11  # the probability that bad luck fails a right attempt in one comparison
DROPOUT = tuple(sized(B=4, H=3, T=9, D=8, M=11, dropout=p) for p in ("0.3", "0.6"))
AXES = {2: "sample", 3: "token", 4: "feature"}  # of what was kept, (calls, branches, B, T, E)
BRANCHES = "the attention's branch", "the mlp's branch"


def shapes_of(sizes):
    E, M = sizes.E, sizes.M
    linears = {f"attention.{name}": (E, E) for name in ("q_proj", "k_proj", "v_proj", "o_proj")}
    linears |= {"mlp_in": (M, E), "mlp_out": (E, M)}
    shapes = {f"norm{i}.{part}": (E,) for i in (1, 2) for part in ("weight", "bias")}
    for name, (rows, columns) in linears.items():
        shapes |= {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}
    return shapes


def loaded(handle, sizes, weights, dropout=0.0):
    return handle.TransformerBlock.loaded(weights, sizes.E, sizes.H, sizes.M, dropout)


def pair(attempt, reference, sizes, dtype=torch.float64, dropout=0.0):
    """The attempt's module in `dtype` and the reference's in float64, with the same weights."""
    weights = random_weights(shapes_of(sizes), dtype)
    exact = {name: weight.double() for name, weight in weights.items()}
    return loaded(attempt, sizes, weights, dropout), loaded(reference, sizes, exact, dropout)


def tokens(sizes):
    return randn(sizes.B, sizes.T, sizes.E)  # (B, T, E)


module = standard.module(
    pair,
    lambda sizes: [(tokens(sizes),)],
    inputs="x",
    terms=lambda sizes: 4 * sizes.T * (sizes.E + sizes.M),
    rows="token",
)
hardly_dropping = replace(module, pair=functools.partial(pair, dropout=HARDLY))
dropping = replace(module, pair=functools.partial(pair, dropout=0.5))
test_from_scratch = standard.from_scratch(hardly_dropping, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[10]))


# --------------------------------------------------------------------------------------------------- the module itself


@claims(
    "The parameters are those of norm1, norm2, attention.q_proj, k_proj, v_proj and o_proj, mlp_in and mlp_out.",
    look_at="the names and sizes of the layers, and which module they belong to",
    cases=SMALL[:1],
)
def test_parameters(attempt, sizes):
    for dropout in (0.0, 0.5):
        loaded(attempt, sizes, random_weights(shapes_of(sizes)), dropout)


@claims(
    "A num_heads that does not divide embed_dim raises ValueError.",
    look_at="what the constructor does with the two sizes",
    cases=(Sizes(E=6, H=4), Sizes(E=10, H=3), Sizes(E=4, H=6)),
)
def test_heads_must_divide(attempt, sizes):
    check_raises_value_error(
        lambda: attempt.TransformerBlock(sizes.E, sizes.H, 8)(randn(2, 3, sizes.E).float()),
        f"TransformerBlock({sizes.E}, {sizes.H}, 8)",
    )


@claims(
    "The output is one tensor of shape (B, T, E).",
    look_at="how the heads are merged, and what is added to what",
    needs="parameters",
    cases=SIZES[:9],
)
def test_output_shape(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)

    assert_shape(ours(tokens(sizes)), (sizes.B, sizes.T, sizes.E))


test_alike_in_train_and_eval = standard.train_and_eval_alike(
    module,
    claim="With dropout=0.0 the module gives the same output in train() and in eval().",
    look_at="how the dropout probability of the constructor is used",
    needs="output_shape",
    cases=SMALL[:1],
)


# -------------------------------------------------------------------------------------------------- without dropout


@claims(
    "x goes straight through: if o_proj and mlp_out are 0, the output is x.",
    look_at="what each branch is added to, and what comes after the last sum",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_straight_through(attempt, sizes):
    weights = random_weights(shapes_of(sizes))
    for name in weights:
        weights[name] = 0 * weights[name] if name.startswith(("attention.o_proj", "mlp_out")) else weights[name]
    x = tokens(sizes)

    assert_close(
        loaded(attempt, sizes, weights)(x), x, atol=1e-5, what="out with o_proj and mlp_out at 0: out", rows="token"
    )


@claims(
    "The output is that of the two branches: x + attention(norm1(x)), then + mlp_out(gelu(mlp_in(norm2(x)))).",
    look_at="the order of norm, branch and sum, the causal attention, and the activation",
    needs="alike_in_train_and_eval",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    for size in (1.0, 0.02, 3.0):  # with small inputs, the eps of the norms shows
        x = size * tokens(sizes)
        what = "out" if size == 1 else f"out of an x about {size:g} in size: out"

        assert_close(ours(x), theirs(x), atol=1e-5, what=what, rows="token")


@claims(
    "A token's output does not depend on later tokens, and it does on earlier ones.",
    look_at="which side of the diagonal the attention hides",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_causal(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    x = tokens(sizes)
    before = ours(x)
    for place in range(sizes.T):
        changed = x.clone()
        changed[:, place] = randn(sizes.B, sizes.E)
        after = ours(changed)

        what = f"out[:, :{place}] when token {place} changes: out"
        assert_close(after[:, :place], before[:, :place], atol=1e-5, what=what, rows="token")
        for later in range(place, sizes.T):
            moved = bool((after - before)[:, later].abs().amax() > 1e-4)
            assert_holds(moved, f"out[:, {later}] stays the same when token {place} changes")


@claims(
    "Samples do not mix, and one module takes any batch size and any length, call after call.",
    look_at="whether a reshape or the softmax reaches across the batch, and what the module stores",
    needs="values",
    cases=SMALL[:1],
)
def test_sizes_may_change(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)

    for B, T in ((sizes.B, sizes.T), (sizes.B, sizes.T + 3), (sizes.B + 2, 2), (1, 1), (sizes.B, sizes.T)):
        x = randn(B, T, sizes.E)
        assert_close(ours(x), theirs(x), atol=1e-5, what=f"out for B={B}, T={T}: out", rows="token")


# ----------------------------------------------------------------------------------------------------------- dropout


class Readable:
    """A module in which the attention's branch adds 1 to each entry of x, and the mlp's adds 10: what is dropped shows."""

    def __init__(self, attempt, sizes):
        weights = random_weights(shapes_of(sizes))
        eye = torch.eye(sizes.E, dtype=torch.float64)
        weights["attention.v_proj.weight"], weights["attention.v_proj.bias"] = 0 * eye, 0 * eye[0] + 1
        weights["attention.o_proj.weight"], weights["attention.o_proj.bias"] = eye, 0 * eye[0]
        weights["mlp_in.weight"] = 0 * weights["mlp_in.weight"]  # gelu(30) is 30
        weights["mlp_in.bias"] = 0 * weights["mlp_in.bias"] + 30
        weights["mlp_out.weight"] = 0 * weights["mlp_out.weight"] + 10 / (30 * sizes.M)
        weights["mlp_out.bias"] = 0 * eye[0]
        self.weights, self.sizes, self.p = weights, sizes, float(sizes.dropout)
        self.attempt, self.x = attempt, tokens(sizes)
        self.module = loaded(attempt, sizes, weights, self.p)
        in_eval = self.module.run(self.x, training=False).output - self.x
        plain = "in eval() the branches do not add 1 and 10 to x, with weights that make them do so"
        assert_holds(bool(((in_eval - 11).abs() < 1e-4).all()), plain)

    def train(self, calls=1):
        """What the branches add in train(), call after call: (calls, B, T, E)."""
        seeds = [seed(), *[None] * (calls - 1)]
        return torch.stack([self.module.run(self.x, training=True, seed=one).output - self.x for one in seeds])

    def kept(self, calls=1):
        """What is kept in the attention's branch, and in the mlp's: (calls, 2, B, T, E)."""
        added = self.train(calls) * (1 - self.p)
        return torch.stack([((added % 10) - 1).abs() < 0.1, added > 9], dim=1)


def seed():
    return int(torch.randint(1 << 31, ()))


def luck(count, tries=1):
    """The largest distance of a share of `count` draws from its probability. Among `tries` shares, more is UNLIKELY.

    Hoeffding: P(|share - expected| >= t) <= 2 exp(-2 count t²).
    """
    return math.sqrt(math.log(2 * tries / UNLIKELY) / (2 * count))


@claims(
    "By default there is no dropout, and in eval() it does nothing.",
    look_at="the signature of the constructor, and whether dropout knows the mode",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_no_dropout_in_eval(attempt, sizes):
    weights = random_weights(shapes_of(sizes))
    x = tokens(sizes)
    without = loaded(attempt, sizes, weights).run(x, training=False).output
    default = attempt.TransformerBlock.loaded(weights, sizes.E, sizes.H, sizes.M)
    module = loaded(attempt, sizes, weights, 0.5)

    out = default.run(x, training=True).output
    assert_close(out, without, atol=1e-5, what="out in train(), built without dropout: out", rows="token")
    for mode in (False, True, False):  # one call in train() between the others
        out = module.run(x, training=mode, seed=seed() if mode else None).output
        if not mode:
            assert_close(out, without, atol=1e-5, what="out in eval(), with dropout=0.5: out", rows="token")


@claims(
    "In train() some entries are dropped: the output is not that of eval().",
    look_at="whether what is added to x has gone through dropout",
    needs="alike_in_train_and_eval",
    cases=SMALL[:1],
)
def test_something_is_dropped(attempt, sizes):
    x = tokens(sizes)
    module = loaded(attempt, sizes, random_weights(shapes_of(sizes)), 0.5)
    in_eval = module.run(x, training=False).output

    in_train = module.run(x, training=True, seed=seed()).output  # (B, T, E) entries in each of two branches
    dropped = in_train.shape != in_eval.shape or bool(((in_train - in_eval).abs() > 1e-6).any())
    assert_holds(dropped, "nothing is dropped: the output in train() is that in eval()")


@claims(
    "In train() each entry of a branch's result is either 0 or its value in eval() divided by 1 - dropout.",
    look_at="what dropout is applied to, in both branches",
    needs=("no_dropout_in_eval", "something_is_dropped"),
    cases=DROPOUT,
)
def test_dropout_acts_on_branches(attempt, sizes):
    readable = Readable(attempt, sizes)
    added, p = readable.train(), readable.p

    def only(*values):
        return bool(torch.stack([(added - value).abs() < 1e-4 for value in values]).any(0).all())

    ways = {"": (0, 1 / (1 - p)), "is not dropped": (1,), "is dropped, and the rest not divided by 1 - dropout": (0, 1)}
    for of_attention, ones in ways.items():
        for of_mlp, tens in ways.items():
            if only(*(one + 10 * ten for one in ones for ten in tens)):
                wrong = [f"{name} {way}" for name, way in zip(BRANCHES, (of_attention, of_mlp), strict=True) if way]
                assert_holds(not wrong, "; ".join(wrong))
                return
    lost = bool(((added + readable.x).abs() < 1e-9).any())
    assert_holds(not lost, "entries of the output are 0: the sum with x is dropped, not the branch's result alone")
    assert_holds(False, "a branch adds other numbers than 0 and its value in eval() divided by 1 - dropout")


@claims(
    "Each entry is dropped with probability dropout, independently in each sample, token, feature and branch.",
    look_at="the probability, and the shape of the random numbers that dropout draws",
    needs="dropout_acts_on_branches",
    cases=DROPOUT[:1],
)
def test_dropout_is_independent(attempt, sizes):
    readable = Readable(attempt, sizes)
    kept = readable.kept(calls=3)  # (3, 2, B, T, E)

    for name, part in zip(BRANCHES, kept.unbind(1), strict=True):
        share = 1 - float(part.double().mean())
        told = f"in {name} {share:.3f} of {part.numel()} entries were dropped, with dropout={readable.p}"
        unequal = next((said for axis, said in AXES.items() if _alike(part, axis - 1)), "")
        assert_holds(not unequal, f"in {name} every {unequal} has the same entries dropped")
        assert_holds(abs(share - readable.p) <= luck(part.numel()), told)
    assert_holds(not bool((kept[:, 0] == kept[:, 1]).all()), "both branches have the same entries dropped")


def _alike(part, axis):
    first = part.narrow(axis, 0, 1)
    return bool((part == first).all())


@claims(
    "Each call draws again which entries are dropped.",
    look_at="when the random numbers are drawn",
    needs="dropout_acts_on_branches",
    cases=DROPOUT[:1],
)
def test_dropout_is_fresh(attempt, sizes):
    kept = Readable(attempt, sizes).kept(calls=3).flatten(1)

    for first, second in ((0, 1), (1, 2)):
        same = bool((kept[first] == kept[second]).all())
        assert_holds(not same, f"calls {first + 1} and {second + 1} drop the same entries")


# ---------------------------------------------------------------------------------------------- true of every kata, core


test_gradients = standard.gradients(
    module,
    claim="Gradients to x and to every parameter are those of the definition.",
    needs="values",
    cases=(SIZES[0], SIZES[2]),
)
test_output_dtype = standard.output_dtype(dropping, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(module, needs="values", cases=SMALL[:1])
test_inputs_unmodified = standard.inputs_unmodified(dropping, needs="output_shape", cases=SMALL[:1])
test_non_contiguous_inputs = standard.non_contiguous_inputs(module, needs="values", cases=SMALL[:1])
test_device = standard.device(hardly_dropping, needs="output_shape", cases=SMALL[:1])


# ---------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Scores of about 1e4 in float32 give finite, right results.",
    tier="edge",
    needs="values",
    cases=SMALL[:1],
    look_at="exp of a large number, and what a masked score becomes",
)
def test_large_scores(attempt, reference, sizes):
    weights = random_weights(shapes_of(sizes), torch.float32)
    for name in ("attention.q_proj.weight", "attention.k_proj.weight"):
        weights[name] = 64 * weights[name]
    exact = {name: weight.double() for name, weight in weights.items()}
    x = tokens(sizes).float()
    out = loaded(attempt, sizes, weights)(x)

    assert_close(out, loaded(reference, sizes, exact)(x.double()), atol=2e-2, rows="token")


test_half_precision = standard.half_precision(module, needs="values", cases=SMALL[:1])
test_float64_throughout = standard.float64_throughout(module, needs="values", cases=SMALL[:1])
test_own_memory = standard.own_memory(module, needs="output_shape", cases=(SIZES[0], SIZES[5]))
