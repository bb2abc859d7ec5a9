"""Hidden tests of causal_mask: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    AttemptRaised,
    Drawn,
    Sizes,
    assert_close,
    assert_equal,
    assert_holds,
    assert_shape,
    claims,
    randn,
    standard,
)


def longer(*, Tq, more, **sizes):
    return Sizes(Tq=Tq, Tk=Tq + more, **sizes)


MASKS = (
    Sizes(Tq=1, Tk=1),
    Sizes(Tq=2, Tk=3),
    Sizes(Tq=3, Tk=3),
    Sizes(Tq=1, Tk=4),
    Sizes(Tq=3, Tk=7),
    Sizes(Tq=131, Tk=150),
    Sizes(Tq=2, Tk=1100),  # more than a mask that is made once and cut
    Drawn(longer, Tq=(1, 40), more=(0, 40)),
)
SIZES = (
    Sizes(B=2, H=3, Tq=4, Tk=4, D=5, Dv=6),
    Sizes(B=3, H=2, Tq=4, Tk=6, D=7, Dv=5),
    Sizes(B=2, H=3, Tq=1, Tk=5, D=6, Dv=4),
    Sizes(B=3, H=3, Tq=3, Tk=3, D=3, Dv=3),
    Sizes(B=4, H=2, Tq=1, Tk=1, D=3, Dv=5),
    Sizes(B=1, H=1, Tq=2, Tk=6, D=1, Dv=3),
    Sizes(B=2, H=3, Tq=131, Tk=150, D=9, Dv=2),
    Sizes(B=1, H=1, Tq=3, Tk=1100, D=2, Dv=4),
    Sizes(B=2, H=3, Tq=4, Tk=5, D=3, Dv=1),
    Sizes(B=1, H=2, Tq=3, Tk=4, D=70, Dv=66),
)
EVERY = (*SIZES, Drawn(longer, B=(1, 4), H=(1, 4), Tq=(1, 30), more=(0, 30), D=(1, 24), Dv=(1, 24)))
SMALL = SIZES[:2]  # as many queries as keys; then fewer


def qkv(sizes):
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv)."""
    return (
        randn(sizes.B, sizes.H, sizes.Tq, sizes.D),
        randn(sizes.B, sizes.H, sizes.Tk, sizes.D),
        randn(sizes.B, sizes.H, sizes.Tk, sizes.Dv),
    )


attention = standard.function(
    "causal_attention", lambda sizes: [qkv(sizes)], inputs="q, k and v", terms=lambda sizes: sizes.Tk * sizes.D
)
test_from_scratch = standard.from_scratch(attention, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[1], SIZES[6]))


# ------------------------------------------------------------------------------------------------------- the mask


@claims("The mask is one tensor of shape (num_queries, num_keys).", cases=MASKS, look_at="the order of the two sizes")
def test_mask_shape(attempt, sizes):
    assert_shape(attempt.causal_mask(sizes.Tq, sizes.Tk), (sizes.Tq, sizes.Tk), what="the mask")


@claims(
    "The mask is bool.",
    needs="mask_shape",
    cases=MASKS[2:3],
    look_at="what a comparison gives, and what torch.ones gives",
)
def test_mask_dtype(attempt, sizes):
    dtype = attempt.causal_mask(sizes.Tq, sizes.Tk).dtype

    assert_holds(dtype == torch.bool, f"the mask is {str(dtype).removeprefix('torch.')}, expected bool")


@claims(
    "The mask is True where j <= i + Tk - Tq: at the query's own position and at earlier ones.",
    look_at="where the diagonal lies when there are fewer queries than keys, and which side of it is True",
    needs="mask_dtype",
    cases=MASKS,
)
def test_mask_values(attempt, reference, sizes):
    assert_equal(attempt.causal_mask(sizes.Tq, sizes.Tk), reference.causal_mask(sizes.Tq, sizes.Tk), what="mask")


@claims(
    "The mask is on the requested device: a torch.device, a string, or None for the default.",
    look_at="how the argument device is used",
    needs="mask_values",
    cases=MASKS[1:2],
)
def test_mask_device(attempt, reference, sizes):
    right = reference.causal_mask(sizes.Tq, sizes.Tk)
    for device in (None, "cpu:0", torch.device("cpu:0")):  # not "cpu", which an attempt may have written itself
        result = attempt.causal_mask.run(sizes.Tq, sizes.Tk, device, devices=True)

        assert_equal(result.output, right, what=f"mask with device={device}: mask")
        if device is None:
            continue
        strays = result.recording.strays
        assert_holds("the result" not in strays, f"the mask is on the default device when device is {device!r}")
        assert_holds(
            not strays, f"in {', '.join(strays)} a tensor is on the wrong device when device is not the default one"
        )

    try:
        attempt.causal_mask(sizes.Tq, sizes.Tk, "nowhere")
    except AttemptRaised:
        return  # as torch raises for a device that it does not know
    assert_holds(False, "device='nowhere' gives a mask too: the argument device does not decide where the mask is")


# -------------------------------------------------------------------------------------------------- the attention


@claims(
    "The output is one tensor of shape (B, H, Tq, Dv).", cases=EVERY, look_at="which dimension the weights sum over"
)
def test_output_shape(attempt, sizes):
    out = attempt.causal_attention(*qkv(sizes))

    assert_shape(out, (sizes.B, sizes.H, sizes.Tq, sizes.Dv))


@claims(
    "The output is softmax(q kᵀ / sqrt(D)) v, each query over its own position and earlier ones.",
    look_at="the scale, the dimension of the softmax, and the mask",
    needs="output_shape",
    cases=EVERY,
)
def test_values(attempt, reference, sizes):
    for call in ("out", "out on a second call: out"):
        q, k, v = qkv(sizes)
        right = reference.causal_attention(q, k, v)

        assert_close(attempt.causal_attention(q, k, v), right, atol=1e-5, what=call)
        if sizes not in SMALL:
            break  # one call is enough for the rest


@claims(
    "A query's output does not depend on keys or values after its own position.",
    look_at="whether masked scores become so low before the softmax that their weight is 0",
    needs="output_shape",
    cases=SMALL,
)
def test_no_future_leak(attempt, sizes):
    q, k, v = qkv(sizes)
    before = attempt.causal_attention(q, k, v)
    for first in range(sizes.Tk - sizes.Tq + 1, sizes.Tk):
        changed_k, changed_v = k.clone(), v.clone()
        changed_k[..., first:, :] = randn(*k[..., first:, :].shape)
        changed_v[..., first:, :] += 1e6  # a small weight is not 0
        after = attempt.causal_attention(q, changed_k, changed_v)
        earlier = first - (sizes.Tk - sizes.Tq)  # the queries before this one are before the first changed key

        assert_close(
            _numbers(after[..., :earlier, :]),
            _numbers(before[..., :earlier, :]),
            atol=1e-5,
            what=f"out[..., :{earlier}, :] when k and v change from {first} on: out",
        )


def _numbers(out):
    """NaN as 0: a query whose output is NaN both times is no leak; that it is NaN is another property's."""
    return out.nan_to_num(nan=0.0)


@claims(
    "Every query gives weight to its own position and to every earlier one.",
    look_at="where the diagonal lies, and which side of it is masked",
    needs="output_shape",
    cases=SMALL,
)
def test_past_and_self_count(attempt, sizes):
    q, k, _ = qkv(sizes)
    one_hot = torch.eye(sizes.Tk, dtype=torch.float64)  # (Tk, Tk): with these values the output is the weights
    v = one_hot.expand(sizes.B, sizes.H, -1, -1).contiguous()

    weights = attempt.causal_attention(q, k, v)  # (B, H, Tq, Tk)

    may = torch.ones(sizes.Tq, sizes.Tk, dtype=torch.bool).tril(sizes.Tk - sizes.Tq)
    lacking = may & ~(weights > 1e-7)
    if bool(lacking.any()):
        sample, head, query, key = (int(i) for i in lacking.nonzero()[0])
        position = query + sizes.Tk - sizes.Tq
        assert_holds(
            False,
            f"query {query}, which stands at position {position}, gives key {key} the weight "
            f"{float(weights[sample, head, query, key]):.4f}",
        )


@claims(
    "Each query's weights over the keys it may attend to sum to 1: if all values are equal, the output is that value.",
    look_at="whether the mask acts before the softmax, and which dimension the softmax normalises",
    needs="output_shape",
    cases=SMALL,
)
def test_weights_sum_to_one(attempt, sizes):
    q, k, v = qkv(sizes)
    same = v[..., :1, :].expand_as(v).contiguous()  # (B, H, Tk, Dv), one value for every key

    out = attempt.causal_attention(q, k, same)

    assert_close(out, same[..., :1, :].expand_as(out), atol=1e-5, what="out when all values are equal: out")


@claims(
    "The queries are the last Tq positions: the last queries give the same output alone as among all queries.",
    look_at="how the mask is aligned when there are fewer queries than keys",
    needs="output_shape",
    cases=(SIZES[1], SIZES[2]),
)
def test_last_queries_alone(attempt, sizes):
    q, k, v = qkv(sizes)
    earlier = randn(sizes.B, sizes.H, sizes.Tk - sizes.Tq, sizes.D)
    every = torch.cat([earlier, q], dim=-2)  # (B, H, Tk, D)

    among_all = attempt.causal_attention(every, k, v)[..., -sizes.Tq :, :]
    alone = attempt.causal_attention(q, k, v)

    assert_close(alone, among_all, atol=1e-5, what=f"out of the last {sizes.Tq} of {sizes.Tk} queries: out")


@claims(
    "A query's output does not depend on the other queries.",
    look_at="whether the softmax runs over the keys, the last dimension of the scores",
    needs="output_shape",
    cases=SMALL,
)
def test_queries_are_independent(attempt, sizes):
    q, k, v = qkv(sizes)
    before = attempt.causal_attention(q, k, v)
    for query, others in ((0, slice(1, None)), (-1, slice(None, -1))):
        changed = q.clone()
        changed[..., others, :] = randn(*changed[..., others, :].shape)
        after = attempt.causal_attention(changed, k, v)

        assert_close(
            _numbers(after[..., query, :]),
            _numbers(before[..., query, :]),
            atol=1e-5,
            what=f"out[..., {query}, :] when the other queries change: out",
        )


@claims(
    "Samples and heads do not mix: changing one does not change the others.",
    look_at="whether the softmax or a reshape reaches across the batch or the heads",
    needs="output_shape",
    cases=SMALL,
)
def test_samples_and_heads_are_independent(attempt, sizes):
    q, k, v = qkv(sizes)
    before = attempt.causal_attention(q, k, v)
    for place, rest in (
        ((0,), (slice(1, None),)),  # the first sample
        ((slice(None), 0), (slice(None), slice(1, None))),  # the first head
    ):
        changed = [part.clone() for part in (q, k, v)]
        for part in changed:
            part[place] = randn(*part[place].shape)
        after = attempt.causal_attention(*changed)

        assert_close(
            _numbers(after[rest]),
            _numbers(before[rest]),
            atol=1e-5,
            what="out of the others when one sample or head changes: out",
        )


test_gradients = standard.gradients(attention, needs="values", cases=SIZES[:5])
test_output_dtype = standard.output_dtype(attention, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(attention, needs="values", cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(attention, needs="output_shape", cases=(SIZES[0], SIZES[3]))
test_non_contiguous_inputs = standard.non_contiguous_inputs(attention, needs="values", cases=SMALL)
test_device = standard.device(attention, needs="output_shape", cases=SMALL[:1])


@claims(
    "Scores of about 1e4 in float32 give finite, right results, masked keys included.",
    tier="edge",
    needs="values",
    cases=SMALL,
    look_at="exp of a large number, and weights that were 0 before the mask",
)
def test_large_scores(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    q, k = (q * 100).round(), (k * 100).round()  # integers, so that float32 scores are nearly exact
    k[..., : sizes.Tk - sizes.Tq + 1, :] = -q[
        ..., :1, :
    ]  # all keys that the first query sees have a large negative score

    out = attempt.causal_attention(q.float(), k.float(), v.float())

    assert_close(out, reference.causal_attention(q, k, v), atol=1e-2)


test_half_precision = standard.half_precision(attention, needs="values", cases=SMALL, terms=lambda sizes: sizes.Tk)
test_float64_throughout = standard.float64_throughout(attention, needs="values", cases=SMALL)
test_own_memory = standard.own_memory(attention, needs="output_shape", cases=(SIZES[0], SIZES[3], SIZES[4]))
