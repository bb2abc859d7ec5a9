"""Hidden tests of sliding_window: each tests one property of the contract in prompt.md."""

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
    check_raises_value_error,
    claims,
    randn,
    standard,
)


def drawn(*, Tq, past, **sizes):
    return Sizes(**sizes, Tq=Tq, Tk=Tq + past)


MASKS = (
    Sizes(Tq=1, Tk=1, window=1, sinks=0),
    Sizes(Tq=4, Tk=4, window=2, sinks=0),
    Sizes(Tq=6, Tk=6, window=2, sinks=1),
    Sizes(Tq=3, Tk=7, window=2, sinks=0),
    Sizes(Tq=5, Tk=8, window=3, sinks=2),
    Sizes(Tq=1, Tk=6, window=3, sinks=1),
    Sizes(Tq=5, Tk=6, window=1, sinks=3),
    Sizes(Tq=4, Tk=5, window=9, sinks=0),
    Sizes(Tq=4, Tk=5, window=2, sinks=9),
    Sizes(Tq=131, Tk=150, window=40, sinks=4),
    Drawn(drawn, Tq=(1, 40), past=(0, 9), window=(1, 30), sinks=(0, 6)),
)
SIZES = (
    Sizes(B=2, H=3, Tq=5, Tk=5, D=7, Dv=6, window=2, sinks=1),
    Sizes(B=3, H=2, Tq=5, Tk=8, D=6, Dv=4, window=3, sinks=2),
    Sizes(B=3, H=2, Tq=6, Tk=6, D=5, Dv=7, window=3, sinks=0),
    Sizes(B=2, H=3, Tq=1, Tk=5, D=6, Dv=4, window=2, sinks=1),
    Sizes(B=4, H=4, Tq=4, Tk=4, D=4, Dv=4, window=4, sinks=4),
    Sizes(B=4, H=2, Tq=1, Tk=1, D=3, Dv=5, window=3, sinks=2),
    Sizes(B=1, H=2, Tq=4, Tk=6, D=1, Dv=3, window=1, sinks=0),
    Sizes(B=2, H=1, Tq=4, Tk=6, D=3, Dv=1, window=7, sinks=0),
    Sizes(B=1, H=2, Tq=3, Tk=6, D=70, Dv=66, window=2, sinks=9),
    Sizes(B=1, H=2, Tq=131, Tk=150, D=9, Dv=2, window=40, sinks=4),
    Drawn(drawn, B=(1, 3), H=(1, 4), Tq=(1, 30), past=(0, 9), D=(1, 90), Dv=(1, 90), window=(1, 30), sinks=(0, 6)),
)
SMALL = SIZES[:2]  # as many queries as keys; then fewer


def qkv(sizes):
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv)."""
    lead = sizes.B, sizes.H
    return randn(*lead, sizes.Tq, sizes.D), randn(*lead, sizes.Tk, sizes.D), randn(*lead, sizes.Tk, sizes.Dv)


def call(sizes):
    """The arguments of the attention. `sinks` has a default, and is left out where it is 0."""
    return (*qkv(sizes), sizes.window, sizes.sinks) if sizes.sinks else (*qkv(sizes), sizes.window)


def may_attend(sizes):
    """(Tq, Tk) bool, counted from the definition."""
    first = sizes.Tk - sizes.Tq
    rows = [
        [j <= p and (p - j < sizes.window or j < sizes.sinks) for j in range(sizes.Tk)] for p in range(first, sizes.Tk)
    ]
    return torch.tensor(rows)


attention = standard.function(
    "sliding_window_attention",
    lambda sizes: [call(sizes)],
    inputs="q, k and v",
    terms=lambda sizes: sizes.Tk * sizes.D,
)
test_from_scratch = standard.from_scratch(attention, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[2], SIZES[9]))


# ------------------------------------------------------------------------------------------------------- the mask


def mask_call(sizes):
    return (sizes.Tq, sizes.Tk, sizes.window, sizes.sinks) if sizes.sinks else (sizes.Tq, sizes.Tk, sizes.window)


@claims("The mask is one tensor of shape (num_queries, num_keys).", cases=MASKS, look_at="the order of the two sizes")
def test_mask_shape(attempt, sizes):
    assert_shape(attempt.sliding_window_mask(*mask_call(sizes)), (sizes.Tq, sizes.Tk), what="the mask")


@claims(
    "The mask is bool.",
    needs="mask_shape",
    cases=MASKS[2:3],
    look_at="what a comparison gives, and what torch.ones gives",
)
def test_mask_dtype(attempt, sizes):
    dtype = attempt.sliding_window_mask(*mask_call(sizes)).dtype

    assert_holds(dtype == torch.bool, f"the mask is {str(dtype).removeprefix('torch.')}, expected bool")


@claims(
    "The mask is True where j <= p and (p - j < window or j < sinks), with p = i + Tk - Tq.",
    look_at="which keys count as the window, where the queries stand among the keys, and who sees a sink",
    needs="mask_dtype",
    cases=MASKS,
)
def test_mask_values(attempt, sizes):
    assert_equal(attempt.sliding_window_mask(*mask_call(sizes)), may_attend(sizes), what="mask")


@claims(
    "The mask is on the requested device: a torch.device, a string, or None for the default.",
    look_at="how the argument device is used",
    needs="mask_values",
    cases=MASKS[4:5],
)
def test_mask_device(attempt, sizes):
    for device in (None, "cpu:0", torch.device("cpu:0")):  # not "cpu", which an attempt may have written itself
        args = sizes.Tq, sizes.Tk, sizes.window, sizes.sinks, device
        result = attempt.sliding_window_mask.run(*args, devices=True)

        assert_equal(result.output, may_attend(sizes), what=f"mask with device={device}: mask")
        strays = result.recording.strays if device is not None else ()
        assert_holds("the result" not in strays, f"the mask is on the default device when device is {device!r}")
        assert_holds(
            not strays, f"in {', '.join(strays)} a tensor is on the wrong device when device is not the default"
        )

    try:
        attempt.sliding_window_mask(sizes.Tq, sizes.Tk, sizes.window, sizes.sinks, "nowhere")
    except AttemptRaised:
        return  # as torch raises for a device that it does not know
    assert_holds(False, "device='nowhere' gives a mask too: the argument device does not decide where the mask is")


@claims(
    "A window below 1 and sinks below 0 raise ValueError, in both functions.",
    look_at="what each function does with window and sinks before all else",
    cases=(Sizes(window=0, sinks=0), Sizes(window=-1, sinks=2), Sizes(window=2, sinks=-1), Sizes(window=9, sinks=-3)),
)
def test_bad_arguments(attempt, sizes):
    tail = sizes.window, sizes.sinks
    q, k, v = randn(1, 2, 3, 4), randn(1, 2, 5, 4), randn(1, 2, 5, 6)
    told = f"window={sizes.window} and sinks={sizes.sinks}"
    mask, attended = attempt.sliding_window_mask, attempt.sliding_window_attention

    check_raises_value_error(lambda: mask(3, 5, *tail), f"sliding_window_mask with {told}")
    check_raises_value_error(lambda: attended(q, k, v, *tail), f"sliding_window_attention with {told}")


# -------------------------------------------------------------------------------------------------- the attention


@claims(
    "The output is one tensor of shape (B, H, Tq, Dv).", cases=SIZES, look_at="which dimension the weights sum over"
)
def test_output_shape(attempt, sizes):
    assert_shape(attempt.sliding_window_attention(*call(sizes)), (sizes.B, sizes.H, sizes.Tq, sizes.Dv))


@claims(
    "The output is softmax(q kᵀ / sqrt(D)) v, each query over its window and the sinks.",
    look_at="the scale, the dimension of the softmax, and the mask",
    needs="output_shape",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    for what in ("out", "out on a second call: out"):
        args = call(sizes)
        right = reference.sliding_window_attention(*args)

        assert_close(attempt.sliding_window_attention(*args), right, atol=1e-5, what=what)


@claims(
    "Every query gives weight to the keys of its window and to the sinks, and to no other key.",
    look_at="where the window begins and ends, and which queries see the sinks",
    needs="output_shape",
    cases=(*SMALL, SIZES[2]),
)
def test_only_window_and_sinks_count(attempt, sizes):
    q, k, _ = qkv(sizes)
    one_hot = torch.eye(sizes.Tk, dtype=torch.float64)  # (Tk, Tk): with these values the output is the weights
    v = one_hot.expand(sizes.B, sizes.H, -1, -1).contiguous()
    weights = attempt.sliding_window_attention(q, k / 2, v, sizes.window, sizes.sinks)  # (B, H, Tq, Tk)
    wrong = (weights.abs() > 1e-7) != may_attend(sizes)
    if bool(wrong.any()):
        sample, head, query, key = (int(i) for i in wrong.nonzero()[0])
        place = f"query {query}, which stands at position {query + sizes.Tk - sizes.Tq}"
        weight = float(weights[sample, head, query, key])

        assert_holds(False, f"{place}, gives key {key} the weight {weight:.4f}")


@claims(
    "A key that a query does not see changes nothing, however large its value is.",
    look_at="whether masked scores become so low before the softmax that their weight is 0",
    needs="output_shape",
    cases=SMALL,
)
def test_hidden_keys_do_not_matter(attempt, sizes):
    q, k, v = qkv(sizes)
    tail = sizes.window, sizes.sinks
    before = attempt.sliding_window_attention(q, k, v, *tail)
    hidden = ~may_attend(sizes)
    for key in hidden.any(0).nonzero().flatten().tolist():
        changed_k, changed_v = k.clone(), v.clone()
        changed_k[..., key, :] = randn(sizes.B, sizes.H, sizes.D)
        changed_v[..., key, :] += 1e6  # a small weight is not 0
        after = attempt.sliding_window_attention(q, changed_k, changed_v, *tail)
        rows = hidden[:, key]  # NaN both times is no leak: that it is NaN is another property's

        what = f"out of the queries that do not see key {key}, when it changes: out"
        assert_close(after[..., rows, :].nan_to_num(), before[..., rows, :].nan_to_num(), atol=1e-5, what=what)


@claims(
    "Each query's weights over the keys that it sees sum to 1: if all values are equal, the output is that value.",
    look_at="whether the mask acts before the softmax, and which dimension the softmax normalises",
    needs="output_shape",
    cases=SMALL,
)
def test_weights_sum_to_one(attempt, sizes):
    q, k, v = qkv(sizes)
    same = v[..., :1, :].expand_as(v).contiguous()  # (B, H, Tk, Dv), one value for every key
    out = attempt.sliding_window_attention(q, k, same, sizes.window, sizes.sinks)

    assert_close(out, same[..., :1, :].expand_as(out), atol=1e-5, what="out when all values are equal: out")


@claims(
    "Samples, heads and queries do not mix: changing one does not change the others.",
    look_at="whether the softmax or a reshape reaches across the batch, the heads or the queries",
    needs="output_shape",
    cases=SMALL,
)
def test_samples_heads_and_queries_are_independent(attempt, sizes):
    q, k, v = qkv(sizes)
    tail = sizes.window, sizes.sinks
    before = attempt.sliding_window_attention(q, k, v, *tail)
    every = slice(None)
    for place, rest, parts in (
        ((0,), (slice(1, None),), (q, k, v)),  # the first sample
        ((every, 0), (every, slice(1, None)), (q, k, v)),  # the first head
        ((every, every, 0), (every, every, slice(1, None)), (q,)),  # the first query
    ):
        changed = [part.clone() for part in parts]
        for part in changed:
            part[place] = randn(*part[place].shape)
        after = attempt.sliding_window_attention(*changed, *(q, k, v)[len(parts) :], *tail)

        what = "out of the others when one sample, head or query changes: out"
        assert_close(after[rest].nan_to_num(), before[rest].nan_to_num(), atol=1e-5, what=what)


test_gradients = standard.gradients(attention, needs="values", cases=SIZES[:6])
test_output_dtype = standard.output_dtype(attention, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(attention, needs="values", cases=SMALL)
test_inputs_unmodified = standard.inputs_unmodified(attention, needs="output_shape", cases=(SIZES[0], SIZES[4]))
test_non_contiguous_inputs = standard.non_contiguous_inputs(attention, needs="values", cases=SMALL)
test_device = standard.device(attention, needs="output_shape", cases=SMALL[:1])


# ---------------------------------------------------------------------------------------------------- beyond the bar


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
    k[..., -1, :] = -q[..., -1, :]  # the last query's own key has a large negative score
    tail = sizes.window, sizes.sinks
    out = attempt.sliding_window_attention(q.float(), k.float(), v.float(), *tail)

    assert_close(out, reference.sliding_window_attention(q, k, v, *tail), atol=1e-2)


test_half_precision = standard.half_precision(attention, needs="values", cases=SMALL, terms=lambda sizes: sizes.Tk)
test_float64_throughout = standard.float64_throughout(attention, needs="values", cases=SMALL)
test_own_memory = standard.own_memory(attention, needs="output_shape", cases=(SIZES[0], SIZES[4], SIZES[5]))
