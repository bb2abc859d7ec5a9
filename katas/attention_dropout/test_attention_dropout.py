"""Hidden tests of attention_dropout: each tests one property of the contract in prompt.md."""

import math

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
    standard,
)

SIZES = (
    Sizes(B=2, H=3, Tq=4, Tk=5, D=7, Dv=6),
    Sizes(B=3, H=2, Tq=6, Tk=4, D=5, Dv=8),
    Sizes(B=2, H=5, Tq=1, Tk=3, D=6, Dv=4),
    Sizes(B=4, H=3, Tq=5, Tk=1, D=2, Dv=7),
    Sizes(B=3, H=3, Tq=3, Tk=3, D=3, Dv=3),
    Sizes(B=1, H=2, Tq=5, Tk=150, D=1, Dv=3),
    Sizes(B=2, H=1, Tq=131, Tk=3, D=9, Dv=5),
    Sizes(B=2, H=3, Tq=4, Tk=5, D=3, Dv=1),
    Sizes(B=1, H=2, Tq=3, Tk=4, D=70, Dv=66),
)
EVERY = (*SIZES, Drawn(B=(1, 4), H=(1, 4), Tq=(1, 30), Tk=(1, 30), D=(1, 24), Dv=(1, 24)))
SMALL = SIZES[:2]
# In training v is two identity matrices side by side, so that out shows each weight twice: Dv = 2 Tk.
READABLE = (
    Sizes(B=2, H=3, Tq=8, Tk=7, D=5, p="0.3"),
    Sizes(B=3, H=2, Tq=6, Tk=10, D=4, p="0.8"),
    Sizes(B=4, H=3, Tq=5, Tk=1, D=2, p="0.5"),
    Sizes(B=1, H=1, Tq=130, Tk=150, D=3, p="0.5"),
)
MANY = (  # enough weights to tell p from p + 0.03 and p - 0.03 for certain
    Sizes(B=2, H=3, Tq=100, Tk=110, D=5, p="0.1"),
    Sizes(B=3, H=2, Tq=110, Tk=100, D=5, p="0.6"),
)
HALF = Sizes(B=4, H=3, Tq=13, Tk=12, D=5, p="0.5")
AXES = {1: "sample", 2: "head", 3: "query", 4: "key"}  # of the weights of several calls, (calls, B, H, Tq, Tk)
UNLIKELY = 1e-11  # the probability that bad luck fails a right attempt in a comparison; a grading makes fewer than 100
# Calls until one weight is dropped and another is not. With p=0.5 they are enough even if all weights share one draw.
TRIES = 40


def qkv(sizes):
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv)."""
    return (
        randn(sizes.B, sizes.H, sizes.Tq, sizes.D),
        randn(sizes.B, sizes.H, sizes.Tk, sizes.D),
        randn(sizes.B, sizes.H, sizes.Tk, sizes.Dv),
    )


def seed():
    return int(torch.randint(1 << 31, ()))


class Readable:
    """Calls whose output is their weights, each shown twice. So a dropped weight differs from a dropped output number."""

    def __init__(self, attempt, sizes, *, identical_keys=False):
        self.attempt, self.sizes, self.p = attempt, sizes, float(sizes.p)
        self.q = randn(sizes.B, sizes.H, sizes.Tq, sizes.D) / 2  # so that no weight is too small to be told from 0
        self.k = randn(sizes.B, sizes.H, 1 if identical_keys else sizes.Tk, sizes.D)
        self.k = self.k.expand(-1, -1, sizes.Tk, -1).contiguous()
        unit = torch.eye(sizes.Tk, dtype=torch.float64)
        self.v = torch.cat([unit, unit], dim=1).expand(sizes.B, sizes.H, -1, -1).contiguous()  # (B, H, Tk, 2 Tk)
        # The attempt's own weights, so that dropout can be judged where the weights are wrong too.
        self.undropped = self.read(attempt.attention_with_dropout(self.q, self.k, self.v, 0.0, False))[0]

    def read(self, out):
        """(B, H, Tq, 2 Tk) -> the weights, each read twice: (2, B, H, Tq, Tk)."""
        return out.unflatten(-1, (2, self.sizes.Tk)).movedim(-2, 0)

    def train(self, calls, **asked):
        """The weights of `calls` calls in training. The first call is seeded: (calls, 2, B, H, Tq, Tk)."""
        outputs = []
        for call in range(calls):
            args = self.q, self.k, self.v, self.p, True
            out = self.attempt.attention_with_dropout.run(*args, seed=None if call else seed(), **asked).output
            assert_shape(out, (*self.q.shape[:-1], 2 * self.sizes.Tk), what="the output in training")
            outputs.append(self.read(out))
        return torch.stack(outputs)

    def train_until_mixed(self):
        """The weights of enough calls to see dropped and kept weights, or of TRIES calls: (2, calls, B, H, Tq, Tk).

        One call is usually enough. If many weights share a draw, a call may drop all of them, or none.
        """
        seen = self.train(calls=1)
        while len(seen) < TRIES and near(seen, self.undropped * (seen.mean() / self.undropped.mean())):
            seen = torch.cat([seen, self.train(calls=1)])
        return seen.movedim(1, 0)


def luck(count, tries=1):
    """The largest distance of a share of `count` independent draws from its probability: more is UNLIKELY in `tries`.

    Hoeffding: P(|share - expected| >= t) <= 2 exp(-2 count t²).
    """
    return math.sqrt(math.log(2 * tries / UNLIKELY) / (2 * count))


def drawn(kept, axes):
    """`kept` with one entry along each axis of `axes` on which all entries agree, so that a shared draw counts once."""
    for axis in axes:
        first = kept.narrow(axis, 0, 1)
        kept = first if bool((kept == first).all()) else kept
    return kept


def near(actual, expected):
    """Whether two tensors are equal up to 1e-6. Rounding in float32 changes less than that."""
    return bool(((actual - expected).abs() <= 1e-6).all())


undropped = standard.function(
    "attention_with_dropout",
    lambda sizes: [(*qkv(sizes), 0.5, False), (*qkv(sizes), 0.0, True)],
    inputs="q, k and v",
    terms=lambda sizes: sizes.Tk * sizes.D,
)


def in_both_modes(sizes):
    return [(*qkv(sizes), 0.5, training) for training in (False, True)]


def watched(sizes):
    """Calls that give the same output twice, so that a recorded call can be compared with a second one.

    In training with p=0.5 the values are 0, so that the output is 0 whichever weights are dropped.
    """
    q, k, v = qkv(sizes)
    return [(q, k, v, 0.5, False), (q, k, 0 * v, 0.5, True), (q, k, v, 0.0, True)]


test_from_scratch = standard.from_scratch(
    undropped, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[5]), calls=watched
)


# ------------------------------------------------------------------------------------------------- without dropout


@claims(
    "The output is one tensor of shape (B, H, Tq, Dv), in training and in evaluation.",
    cases=EVERY,
    look_at="which dimension the weights sum over",
)
def test_output_shape(attempt, sizes):
    for training in (False, True):
        out = attempt.attention_with_dropout(*qkv(sizes), 0.5, training)
        what = f"the output with training={training}"
        assert_shape(out, (sizes.B, sizes.H, sizes.Tq, sizes.Dv), what=what)


@claims(
    "With p = 0 and training=False the output is softmax(q kᵀ / sqrt(D)) v.",
    look_at="the scale, and the dimension of the softmax",
    needs="output_shape",
    cases=EVERY,
)
def test_values(attempt, reference, sizes):
    q, k, v = qkv(sizes)

    for nothing in (0.0, 0):  # a second call must be right too
        out = attempt.attention_with_dropout(q, k, v, nothing, False)
        assert_close(out, reference.attention_with_dropout(q, k, v, nothing, False), atol=1e-5)
        q = q.flip(-2)
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "With training=False nothing is dropped, whatever p is.",
    look_at="how dropout knows whether it is training",
    needs="output_shape",
    cases=SMALL,
)
def test_evaluation_drops_nothing(attempt, sizes):
    q, k, v = qkv(sizes)
    without = attempt.attention_with_dropout(q, k, v, 0.0, False)
    for p in (0.5, 0.9):
        attempt.attention_with_dropout(q, k, v, p, True)  # one call in training between the others
        out, again = (attempt.attention_with_dropout(q, k, v, p, False) for _ in range(2))
        assert_shape(again, tuple(out.shape), what="the output of a second call")
        assert_holds(near(again, out), f"two calls with p={p} and training=False give different results")
        assert_close(out, without, atol=1e-5, what=f"out with p={p} and training=False: out")


@claims(
    "With p = 0 training changes nothing.",
    look_at="what dropout does when its probability is 0",
    needs="output_shape",
    cases=SMALL,
)
def test_zero_probability(attempt, sizes):
    q, k, v = qkv(sizes)
    without = attempt.attention_with_dropout(q, k, v, 0.0, False)
    for nothing in (0.0, 0):
        out = attempt.attention_with_dropout(q, k, v, nothing, True)
        assert_close(out, without, atol=1e-5, what=f"out with p={nothing} and training=True: out")


@claims(
    "It raises ValueError unless 0 <= p < 1, with training=True and with training=False.",
    look_at="which values of p are accepted, and when p is checked",
    cases=tuple(Sizes(p=p) for p in ("1.0", "-0.1", "1.5", "-2", "1")),
)
def test_p_is_checked(attempt, sizes):
    p = float(sizes.p) if "." in sizes.p else int(sizes.p)
    for training in (True, False):
        check_raises_value_error(
            lambda training=training: attempt.attention_with_dropout(*qkv(SIZES[0]), p, training),
            f"p={p} with training={training}",
        )


@claims(
    "Every p in [0, 1) is allowed, for example 0.999 and 0.001.",
    look_at="which p are refused",
    needs="output_shape",
    cases=SMALL[:1],
)
def test_legal_p(attempt, sizes):
    for p in (0.001, 0.25, 0.999):
        out = attempt.attention_with_dropout(*qkv(sizes), p, True)
        assert_holds(bool(out.isfinite().all()), f"out is not finite with p={p} and training=True")


@claims(
    "Scores far from 0, up to about 30 and -30, give the formula's values too.",
    look_at="whether anything limits the scores, or is added to the sum of the weights",
    needs="values",
    cases=SMALL,
)
def test_strong_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    low = q.clone(), k.clone()  # the first feature takes 30 off every score
    low[0][..., 0], low[1][..., 0] = -6 * sizes.D**0.5, 5.0

    for strong in ((4 * q, 4 * k), low):
        out = attempt.attention_with_dropout(*strong, v, 0.5, False)
        # 1e-4, because with scores of 30 an attempt that computes in float32 loses two digits
        assert_close(out, reference.attention_with_dropout(*strong, v, 0.0, False), atol=1e-4)


@claims(
    "In evaluation each query's weights over the keys sum to 1: if all values are equal, the output is that value.",
    look_at="which dimension of the scores the softmax normalises",
    needs="output_shape",
    cases=SMALL,
)
def test_weights_sum_to_one(attempt, sizes):
    q, k, v = qkv(sizes)
    same = v[..., :1, :].expand_as(v).contiguous()  # (B, H, Tk, Dv), one value for every key

    out = attempt.attention_with_dropout(q, k, same, 0.5, False)

    assert_close(out, same[..., :1, :].expand_as(out), atol=1e-5, what="out when all values are equal: out")


@claims(
    "Samples, heads and queries do not mix: changing one does not change the others.",
    look_at="whether the softmax or a reshape mixes any dimension other than the keys",
    needs="output_shape",
    cases=SMALL,
)
def test_others_do_not_matter(attempt, sizes):
    q, k, v = qkv(sizes)
    before = attempt.attention_with_dropout(q, k, v, 0.0, False)
    for name, axis in (("sample", 0), ("head", 1), ("query", 2)):
        changed = [part.clone() for part in ((q,) if axis == 2 else (q, k, v))]
        for part in changed:
            part.select(axis, 0).copy_(randn(*part.select(axis, 0).shape))
        after = attempt.attention_with_dropout(*changed, *(k, v)[: 3 - len(changed)], 0.0, False)

        what = f"out of the others when {name} 0 changes: out"
        count = before.shape[axis] - 1
        assert_close(after.narrow(axis, 1, count), before.narrow(axis, 1, count), atol=1e-5, what=what)


test_gradients = standard.gradients(
    undropped,
    claim="Without dropout the gradients to q, k and v are those of the formula.",
    needs="values",
    cases=SIZES[:4],
)


# --------------------------------------------------------------------------------------------------- with dropout


@claims(
    "In training some weights are dropped: the output differs from that without dropout.",
    look_at="whether the weights that reach the output have gone through dropout",
    needs="zero_probability",
    cases=tuple(Sizes(**{**sizes.as_dict(), "p": "0.5"}) for sizes in SMALL),
)
def test_something_is_dropped(attempt, sizes):
    q, k, v = qkv(sizes)
    p = float(sizes.p)
    without = attempt.attention_with_dropout(q, k, v, 0.0, False)
    for call in range(TRIES):
        in_training = attempt.attention_with_dropout.run(q, k, v, p, True, seed=None if call else seed()).output
        assert_shape(in_training, tuple(without.shape), what="the output in training")
        if not near(in_training, without):
            return
    attends = not near(attempt.attention_with_dropout(q, k.flip(-1), v, 0.0, False), without)
    unseen = "the output in training is that without dropout, and does not depend on q and k: it shows no weights"
    assert_holds(attends, unseen)
    assert_holds(False, "nothing is dropped: the output in training is that without dropout")


@claims(
    "In training a query's weights sum to 1 only on average: after dropout they are not normalised again.",
    look_at="what happens to the weights after some were dropped",
    needs="something_is_dropped",
    cases=(Sizes(B=4, H=3, Tq=13, Tk=11, D=5, p="0.5"),),  # Tk odd: half of the weights are not half of the sum
)
def test_what_is_dropped_is_missing(attempt, sizes):
    # All scores and all values are equal, so the output is the sum of the weights.
    q = torch.ones(sizes.B, sizes.H, sizes.Tq, sizes.D, dtype=torch.float64)
    k = torch.ones(sizes.B, sizes.H, sizes.Tk, sizes.D, dtype=torch.float64)
    p = float(sizes.p)
    total = attempt.attention_with_dropout.run(q, k, k, p, True, seed=seed()).output

    # If all weights of a query were dropped, dividing by their sum gives NaN, or 0 if something was added to the sum.
    told = total[total.abs() > 1e-6]
    if told.numel() and near(told, torch.ones_like(told)):
        zeros = "some are 0" if some_weights_are_zero(attempt, sizes) else "none is 0"
        assert_holds(False, f"each query's weights sum to 1 in training, and {zeros}, with p={sizes.p}")


def some_weights_are_zero(attempt, sizes):
    """Whether dropout makes the weights of one query 0, and not those of another.

    Only one key's values are not 0, so that the output is its weights. A dropped value is lost for all queries.
    """
    q, k = randn(sizes.B, sizes.H, sizes.Tq, sizes.D) / 2, randn(sizes.B, sizes.H, sizes.Tk, sizes.D)
    v = torch.zeros_like(k)
    v[0, 0, 1] = 1
    p = float(sizes.p)
    seen = attempt.attention_with_dropout(q, k, v, 0.0, False).abs() > 1e-6  # (B, H, Tq, D)
    for call in range(4):
        out = attempt.attention_with_dropout.run(q, k, v, p, True, seed=None if call else seed()).output
        zero = seen & (out == 0)
        if bool((zero.any(-2) & (seen & ~zero).any(-2)).any()):
            return True
    return False


@claims(
    "In training each weight after the softmax is either exactly 0 or its value in evaluation divided by 1 - p.",
    look_at="what dropout is applied to, and what happens to the weights afterwards",
    needs=("something_is_dropped", "others_do_not_matter"),
    cases=READABLE,
)
def test_dropout_acts_on_weights(attempt, sizes):
    readable = Readable(attempt, sizes)
    once, again = weights = readable.train_until_mixed()  # each (calls, B, H, Tq, Tk)
    check_weights(readable, once, again)
    kept = once != 0
    expected = torch.where(kept, readable.undropped / (1 - readable.p), 0.0)
    for read in weights:
        dropped = read[~kept]
        assert_holds(
            not bool(dropped.any()), f"a dropped weight is {float(dropped.abs().max()):.3g}, expected exactly 0"
        )
        assert_close(read, expected, atol=1e-5, what="the weight in training", rows="query", columns="key")


def check_weights(readable, once, again):
    """Fail with a message for each mistake that the weights in training show."""
    in_eval, p = readable.undropped, readable.p
    kept = once.abs() > in_eval.abs() / 1e3
    assert_holds(bool(kept.any()), f"every weight is dropped, with p={p}")
    assert_holds(not near(once, in_eval), "nothing is dropped: the weights in training are those in evaluation")
    if not near(once, again):
        ratio = (once / in_eval - again / in_eval).abs() > 1e-6  # (calls, B, H, Tq, Tk), where the two reads differ
        alike = bool((ratio == ratio[..., :1, :]).all())
        whose = "for the same features in every query" if alike else "for single features"
        assert_holds(False, f"of two numbers that one weight multiplies, one is dropped and the other is not, {whose}")
    if near(once.sum(-1), torch.ones_like(once[..., 0])):
        zeros = "though some are 0" if bool((once == 0).any()) else "and none is 0"
        assert_holds(False, f"the weights differ from those in evaluation, {zeros}: each query's still sum to 1")
    assert_holds(
        not near(once, kept * in_eval), "the weights that are kept in training are those in evaluation, not divided"
    )
    upside_down = not near(once, kept * in_eval / (1 - p)) and near(once, kept * in_eval / p)
    assert_holds(not upside_down, "the weights that are kept in training are those in evaluation divided by p")


@claims(
    "In training, if all keys are identical, some weights are exactly 0 and all others are 1 / (Tk (1 - p)).",
    look_at="whether scores or weights are dropped",
    needs="output_shape",
    cases=(HALF,),
)
def test_identical_keys(attempt, sizes):
    readable = Readable(attempt, sizes, identical_keys=True)
    weights = readable.train_until_mixed()[0]  # (calls, B, H, Tq, Tk)
    scaled = 1 / (sizes.Tk * (1 - readable.p))

    ordered = weights.sort(dim=-1).values
    # The largest number of different values among the weights of one query.
    kinds = 1 + int((ordered.diff(dim=-1) > 1e-6).sum(-1).max())
    several = "one size" if kinds == 1 else f"{kinds} sizes"
    several += " and sum to 1" if near(weights.sum(-1), torch.ones_like(weights[..., 0])) else ""
    for dim, whose in (
        (-2, "key"),
        (-3, "place (query, key) over all heads"),
        (-4, "place (query, key) over all samples"),
    ):
        along = readable.undropped.sum(dim), weights.sum(dim)
        same = weights.sort(dim=dim).values.diff(dim=dim) < 1e-9  # scores of 0 give weights of the same size
        some = bool((same.any(dim) & ~same.all(dim)).any())
        if kinds > 1 and some and all(near(part, torch.ones(())) for part in along):
            several += f"; those of one {whose} sum to 1, and some are alike"
    told = f"no weight is 0 in training, with identical keys and p=0.5; the weights of one query are of {several}"
    assert_holds(bool((weights == 0).any()), told)
    expected = torch.where(weights == 0, 0.0, scaled)
    assert_close(weights, expected, atol=1e-5, what="the weight in training", rows="query", columns="key")


@claims(
    "In training the average of many calls is the output in evaluation.",
    look_at="how the kept weights are scaled",
    needs="output_shape",
    cases=(Sizes(B=2, H=3, Tq=8, Tk=200, D=3, Dv=50, p="0.5"),),
)
def test_average(attempt, sizes):
    q, k, v = qkv(sizes)
    q = q / 4
    q[..., 0], k[..., 0] = 1.0, sizes.D**0.5  # all scores are about 1: without a softmax they do not sum to 1 by luck
    # With values of 1 the output is the sum of the weights. Kept weights are doubled: each moves it by its own size, up or
    # down, and for all 576 sums the squares of these sizes add up to less than 5. Hoeffding: P(|mean - 1| >= 0.03) <=
    # 2 exp(-(0.03 * 576)² / (2 * 5)), which is less than UNLIKELY.
    args = q, k, torch.ones_like(v), 0.5, True
    results = [attempt.attention_with_dropout.run(*args, seed=None if call else seed()) for call in range(12)]
    sums = torch.stack([result.output for result in results]).mean(-1)  # (12, B, H, Tq)

    mean = float(sums.mean())
    # Other mistakes move the sums farther, up and down. They also move the averages by call or by query, so the limit uses
    # their spread: a mean is 8 of its standard errors off only once in 1e5 cases.
    apart = sums.flatten(1).mean(1), sums.mean(0).flatten()  # by call, by query
    far = max(0.03, *(8 * float(part.std()) / len(part) ** 0.5 for part in apart))
    told = f"on average over {sums.numel()} queries the weights sum to {mean:.3f} in training, and to 1 in evaluation"
    assert_holds(abs(mean - 1) <= far, told)


@claims(
    "In training each weight is dropped with probability p.",
    look_at="how p is used",
    needs="dropout_acts_on_weights",
    cases=MANY,
)
def test_dropout_rate(attempt, sizes):
    readable = Readable(attempt, sizes)
    dropped = drawn(readable.train(calls=1)[:, 0] == 0, AXES).double()  # (1, B, H, Tq, Tk)

    share, count = float(dropped.mean()), dropped.numel()
    assert_holds(
        abs(share - readable.p) <= luck(count), f"{share:.3f} of {count} weights were dropped, with p={readable.p}"
    )
    for axis, name in AXES.items():
        parts = dropped.movedim(axis, 0).flatten(1)  # one row for each sample, or head, ...
        far = (parts.mean(1) - readable.p).abs()
        place, count = int(far.argmax()), parts.shape[1]
        told = f"{parts[place].mean():.3f} of {count} weights of {name} {place} were dropped, with p={readable.p}"
        assert_holds(float(far.max()) <= luck(count, tries=len(parts)), told)


@claims(
    "Each weight is dropped independently, for every sample, head, query and key.",
    look_at="the shape of the random numbers that dropout draws",
    needs="dropout_acts_on_weights",
    cases=(HALF, Sizes(B=3, H=3, Tq=20, Tk=20, D=4, p="0.5")),
)
def test_dropout_is_independent(attempt, sizes):
    readable = Readable(attempt, sizes)
    kept = drawn(readable.train(calls=2)[:, 0] != 0, axes=[0])  # (2, B, H, Tq, Tk)

    seen = []
    for axis, name in AXES.items():
        rows = kept.movedim(axis, 0).flatten(1).double()  # one row for each sample, or head, ...
        alike = rows @ rows.T + (1 - rows) @ (1 - rows).T  # in how many places two rows agree: half of them, by chance
        share = alike / rows.shape[1] - torch.eye(len(rows)) / 2
        worst = float((share - 0.5).abs().amax())
        seen.append(
            (worst, luck(rows.shape[1], tries=len(rows) ** 2), f"{len(rows)} {name.replace('query', 'querie')}s")
        )
    for worst, limit, several in sorted(seen, key=lambda one: -one[0]):  # of equal ones the first in AXES
        told = f"two of the {several} agree in {0.5 + worst:.0%} of what is dropped, or differ in as many places"
        assert_holds(worst <= limit, told)
    counts = kept.sum(-1)  # (2, B, H, Tq)
    assert_holds(bool((counts != counts.flatten()[0]).any()), "every query has the same number of weights dropped")
    if sizes.Tq == sizes.Tk:
        places = kept.flatten(0, 2)
        mirrored = float((places == places.mT)[:, ~torch.eye(sizes.Tq, dtype=torch.bool)].double().mean())
        told = f"{mirrored:.0%} of the dropped places are the same when mirrored at the diagonal"
        # Each pair of mirrored places is counted twice, so half as many draws are independent.
        assert_holds(abs(mirrored - 0.5) <= luck(places.numel() // 2 - places.shape[0] * sizes.Tq), told)


@claims(
    "Each call draws again which weights are dropped.",
    look_at="when the random numbers are drawn",
    needs="dropout_acts_on_weights",
    cases=(HALF,),
)
def test_dropout_is_fresh(attempt, sizes):
    readable = Readable(attempt, sizes)
    kept = drawn(readable.train(calls=4)[:, 0] != 0, AXES).flatten(1)  # (4, B H Tq Tk)

    for first in range(4):
        for second in range(first):
            share = float((kept[first] == kept[second]).double().mean())
            told = f"calls {second + 1} and {first + 1} drop the same weights in {share:.0%} of the places, with p=0.5"
            assert_holds(abs(share - 0.5) <= luck(kept.shape[1], tries=6), told)


@claims(
    "In training the gradients are those of the weights that were kept.",
    look_at="whether autograd sees the dropout",
    needs=("gradients", "dropout_acts_on_weights"),
    cases=(READABLE[0], HALF),
)
def test_gradients_in_training(attempt, reference, sizes):
    readable = Readable(attempt, sizes)
    given = [readable.q, readable.k, readable.v]
    cotangent = randn(*readable.q.shape[:-1], 2 * sizes.Tk)
    args = *given, readable.p, True
    result = attempt.attention_with_dropout.run(*args, cotangent=cotangent, seed=seed())
    kept = (readable.read(result.output)[0] != 0) / (1 - readable.p)  # (B, H, Tq, Tk)

    leaves = [value.clone().requires_grad_() for value in given]
    weights = (leaves[0] @ leaves[1].mT / math.sqrt(sizes.D)).softmax(-1) * kept
    right = torch.autograd.grad((weights @ leaves[2] * cotangent).sum(), leaves)
    for name, got, wanted in zip("qkv", result.input_gradients, right, strict=True):
        gradient = torch.zeros_like(wanted) if got is None else got
        what = f"the gradient of {name} in training: grad"
        assert_close(gradient, wanted, atol=1e-5, what=what, rows="row", columns="column")


# --------------------------------------------------------------------------------------------- true of every kata


test_output_dtype = standard.output_dtype(
    undropped,
    claim="The output has the dtype of the inputs, in float32 and float64, in training too.",
    calls=in_both_modes,
    needs="output_shape",
    cases=SMALL[:1],
)
test_float32 = standard.float32(undropped, needs="values", cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(
    undropped, calls=in_both_modes, needs="output_shape", cases=SMALL[:1]
)
test_non_contiguous_inputs = standard.non_contiguous_inputs(undropped, needs="values", cases=SMALL)
test_device = standard.device(
    undropped,
    claim="Every tensor is on the device of the inputs, in training too.",
    look_at="tensors made without device=, random ones among them",
    calls=watched,
    needs="output_shape",
    cases=SMALL[:1],
)


# ------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Scores of about 1e4 in float32 give finite, right results.",
    tier="edge",
    needs="values",
    cases=SMALL,
    look_at="exp of a large number",
)
def test_large_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    q, k = (q * 100).round(), (k * 100).round()  # integers, so that float32 scores are nearly exact

    out = attempt.attention_with_dropout(q.float(), k.float(), v.float(), 0.5, False)

    assert_close(out, reference.attention_with_dropout(q, k, v, 0.5, False), atol=1e-2, what="out")


test_half_precision = standard.half_precision(undropped, needs="values", cases=SMALL, terms=lambda sizes: sizes.Tk)
test_float64_throughout = standard.float64_throughout(undropped, needs="values", cases=SMALL)
test_own_memory = standard.own_memory(undropped, needs="output_shape", cases=(SIZES[0], SIZES[3]))
