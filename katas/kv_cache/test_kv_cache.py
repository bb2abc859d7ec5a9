"""Hidden tests of kv_cache: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    Drawn,
    PropertyFailed,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
    build_pair,
    check_raises_value_error,
    check_stays_on_device,
    claims,
    randn,
    random_weights,
    standard,
)


def sized(*, B, H, T, D):
    return Sizes(B=B, H=H, T=T, E=H * D, D=D)


SIZES = (
    sized(B=2, H=3, T=5, D=4),
    sized(B=3, H=2, T=6, D=5),
    sized(B=1, H=5, T=3, D=2),
    sized(B=2, H=1, T=4, D=6),
    sized(B=2, H=4, T=3, D=1),
    sized(B=3, H=2, T=1, D=5),
    sized(B=3, H=3, T=3, D=3),
    sized(B=1, H=2, T=5, D=70),
    sized(B=1, H=2, T=131, D=3),
    Drawn(sized, B=(1, 4), H=(1, 4), T=(1, 40), D=(1, 24)),
)
SMALL = SIZES[:2]
# With two tokens or more, for chunks.
CHUNKED = (*SIZES[:5], SIZES[6], SIZES[7], SIZES[8], Drawn(sized, B=(1, 4), H=(1, 4), T=(2, 40), D=(1, 24)))
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj")


def pair(attempt, reference, sizes, dtype=torch.float64):
    return build_pair(attempt, reference, "CachedSelfAttention", sizes.E, sizes.H, dtype=dtype)


def tokens(sizes, count=None):
    return randn(sizes.B, sizes.T if count is None else count, sizes.E)  # (B, T, E)


def decode(module, x, *lengths, cache=None):
    """The results of x in chunks of these lengths, and the rest in one: out (B, T, E), and the last cache."""
    outs, rest = [], x
    for length in (*lengths, x.shape[1] - sum(lengths)):
        if length:
            out, cache = module(rest[:, :length].contiguous(), cache)
            assert_shape(out, (x.shape[0], length, x.shape[2]), what=f"out for {length} new tokens")
            outs.append(out)
            rest = rest[:, length:]
    return torch.cat(outs, dim=1), cache


module = standard.module(
    pair, lambda sizes: [(tokens(sizes),)], inputs="x", terms=lambda sizes: sizes.T * sizes.E, rows="token"
)


test_from_scratch = standard.from_scratch(module, blocks=FORBIDDEN_ATTENTIONS, cases=(SIZES[0], SIZES[8]))


@claims(
    "The parameters are q_proj, k_proj, v_proj and o_proj, each nn.Linear(E, E) with its bias, and no others.",
    look_at="the names and sizes of the layers",
    cases=SMALL[:1],
)
def test_parameters(attempt, sizes):
    shapes = {
        f"{name}.{part}": s for name in LINEAR for part, s in (("weight", (sizes.E, sizes.E)), ("bias", (sizes.E,)))
    }
    attempt.CachedSelfAttention.loaded(random_weights(shapes), sizes.E, sizes.H)


@claims(
    "A num_heads that does not divide embed_dim raises ValueError.",
    look_at="what the constructor does with the two sizes",
    cases=(Sizes(E=6, H=4), Sizes(E=10, H=3), Sizes(E=4, H=6)),
)
def test_heads_must_divide(attempt, sizes):
    check_raises_value_error(
        lambda: attempt.CachedSelfAttention(sizes.E, sizes.H)(randn(2, 3, sizes.E).float()),
        f"CachedSelfAttention({sizes.E}, {sizes.H})",
    )


@claims(
    "The result is (out, cache), and out has the shape (B, Tnew, E).",
    look_at="how the heads are merged",
    needs="parameters",
    cases=SIZES[:6],
)
def test_output_shape(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    out, _ = ours(tokens(sizes))

    assert_shape(out, (sizes.B, sizes.T, sizes.E))


@claims(
    "Without a cache, out is causal self-attention over the tokens of x.",
    look_at="the scale, the dimension of the softmax, which keys are hidden, and how heads are split and merged",
    needs="output_shape",
    cases=SIZES,
)
def test_values(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)

    for x in (tokens(sizes), tokens(sizes)):  # the second call without a cache remembers nothing of the first
        assert_close(ours(x)[0], theirs(x)[0], atol=1e-5, rows="token")


test_alike_in_train_and_eval = standard.train_and_eval_alike(module, needs="output_shape", cases=SMALL[:1])


@claims(
    "A token's output does not depend on later tokens of the same call.",
    look_at="which scores are hidden",
    needs="output_shape",
    cases=SMALL,
)
def test_no_future_leak(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    x = tokens(sizes)
    changed = torch.cat([x[:, :2], tokens(sizes, sizes.T - 2)], dim=1)

    what = "out[:, :2] when the later tokens change: out"
    assert_close(ours(changed)[0][:, :2], ours(x)[0][:, :2], atol=1e-5, what=what, rows="token")


# ------------------------------------------------------------------------------------------------------ with a cache


@claims(
    "The cache is (k, v), each (B, H, Tpast + Tnew, D) in the dtype of x.",
    look_at="what you return beside out, and the order of its dimensions",
    needs="output_shape",
    cases=(*SIZES[:4], SIZES[6]),
)
def test_cache_shape(attempt, reference, sizes):
    for dtype in (torch.float64, torch.float32):
        ours, _ = pair(attempt, reference, sizes, dtype)
        _, cache = ours(tokens(sizes).to(dtype))
        check_cache(cache, (sizes.B, sizes.H, sizes.T, sizes.D), dtype)
        _, cache = ours(tokens(sizes, 2).to(dtype), cache)
        check_cache(cache, (sizes.B, sizes.H, sizes.T + 2, sizes.D), dtype)


def check_cache(cache, shape, dtype):
    """A pair of tensors of this shape and dtype."""
    if (
        cache.kind not in ("tuple", "list")
        or len(cache.items) != 2
        or any(isinstance(item, str) for item in cache.items)
    ):
        held = ", ".join(item if isinstance(item, str) else "tensor" for item in cache.items)
        of = f" of ({held})" if cache.kind in ("tuple", "list") else ""
        raise PropertyFailed(
            f"the cache is a {cache.kind.removeprefix('a ')}{of}; the contract asks for (k, v), two tensors"
        )
    for name, (found, kept) in zip(("k", "v"), cache.items, strict=True):
        assert_holds(found == shape, f"{name} in the cache has shape {found}, expected {shape}")
        given = str(dtype).removeprefix("torch.")
        assert_holds(kept == dtype, f"for x in {given}, {name} in the cache is {str(kept).removeprefix('torch.')}")


@claims(
    "One token after another gives what one call over all of them gives.",
    look_at="the order of the joined keys, what you return as the cache, and which keys a new token sees",
    needs="values",
    cases=CHUNKED[:6],
)
def test_one_by_one(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x = tokens(sizes)
    out, _ = decode(ours, x, *[1] * sizes.T)

    assert_close(out, theirs(x)[0], atol=1e-5, what="out one by one: out", rows="token")


@claims(
    "Any cutting into chunks gives the same, and the caches of two cuttings continue alike.",
    look_at="the mask where several new tokens meet a past: at which position does the first of them stand?",
    needs="one_by_one",
    cases=CHUNKED,
)
def test_chunks(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x, more = tokens(sizes), tokens(sizes, 3)
    right = theirs(torch.cat([x, more], dim=1))[0]
    for cut in {1, sizes.T // 2, sizes.T - 1}:
        out, cache = decode(ours, x, cut)
        assert_close(
            out, right[:, : sizes.T], atol=1e-5, what=f"out in chunks of {cut} and {sizes.T - cut}: out", rows="token"
        )
        continued, _ = decode(ours, more, 1, cache=cache)
        what = f"out of 1 + 2 more tokens after {cut} + {sizes.T - cut}: out"
        assert_close(continued, right[:, sizes.T :], atol=1e-5, what=what, rows="token")


@claims(
    "The module remembers nothing: two texts of any sizes may take turns.",
    look_at="what the module stores from one call to the next",
    needs=("alike_in_train_and_eval", "cache_shape"),
    cases=SMALL[:1],
)
def test_texts_take_turns(attempt, reference, sizes):
    texts = tokens(sizes), randn(sizes.B + 1, sizes.T + 2, sizes.E)
    starts = [text[:, :place].contiguous() for text, place in zip(texts, (3, 2), strict=True)]
    rests = [text[:, place:].contiguous() for text, place in zip(texts, (3, 2), strict=True)]
    ours, _ = pair(attempt, reference, sizes)
    alone = [ours(rest, ours(start)[1])[0] for start, rest in zip(starts, rests, strict=True)]
    caches = [ours(start)[1] for start in starts]

    for rest, cache, right, name in zip(rests, caches, alone, ("first", "second"), strict=True):
        what = f"out of the {name} text, when two take turns: out"
        assert_close(ours(rest, cache)[0], right, atol=1e-5, what=what, rows="token")


@claims(
    "The cache that was given is not modified: two continuations do not disturb each other.",
    look_at="whether anything is written into the given cache, or into memory that it shares",
    needs=("alike_in_train_and_eval", "cache_shape"),
    cases=SMALL,
)
def test_cache_not_modified(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    x, one, other, last = tokens(sizes), tokens(sizes, 2), tokens(sizes, 1), tokens(sizes, 1)

    def alone(*chunks):
        """The result of the last chunk, where nobody else continues the same cache."""
        cache = None
        for chunk in chunks:
            out, cache = ours(chunk, cache)
        return out

    starts = x[:, :1].contiguous(), x[:, 1:2].contiguous(), x[:, 2:].contiguous()
    cache = None
    for start in starts:  # the last of several: memory that was reserved in an earlier call has room for more
        _, cache = ours(start, cache)
    _, after_one = ours(one, cache)
    second = ours(other, cache)[0]
    third = ours(last, after_one)[0]  # before `again`, which would put back what `second` overwrote
    again = ours(one, cache)[0]

    # Compared with the attempt itself, so that only a disturbance fails here. The values are asked elsewhere.
    for out, chunks, what in (
        (second, (*starts, other), "a second continuation of one cache"),
        (again, (*starts, one), "the first continuation once more"),
        (third, (*starts, one, last), "the first continuation continued, after the second was made"),
    ):
        assert_close(out, alone(*chunks), atol=1e-5, what=f"out of {what}: out", rows="token")


@claims(
    "A cache that is cut to its first tokens, or indexed along the batch, continues as if it had been made so.",
    look_at="the order of the tokens in the cache, and whether only the cache says how long the past is",
    needs=("alike_in_train_and_eval", "cache_shape"),
    cases=SMALL,
)
def test_cache_may_be_cut(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    x, more = tokens(sizes), tokens(sizes, 2)
    order = [sizes.B - 1, *range(sizes.B), 0]
    _, of_one = ours(x)
    _, of_two = decode(ours, x, 1, sizes.T - 1)
    _, short = ours(x[:, :2].contiguous())

    # Compared with the attempt itself, so that only the cache fails here. The values are asked elsewhere.
    right = ours(more, short)[0]
    for cache, calls, later in ((of_one, "one call", x[:, -2:]), (of_two, "two calls", x[:, 1:3])):
        cut = ours(more, cache.prefix(2, dim=2))[0]
        of_later = ours(more, ours(later.contiguous())[1])[0]
        other = torch.allclose(cut, of_later, atol=1e-6) and not torch.allclose(cut, right, atol=1e-6)
        assert_holds(
            not other, f"the first 2 tokens in a cache made by {calls} are not the first of the text, but later ones"
        )
        assert_close(
            cut, right, atol=1e-5, what=f"out after a cache made by {calls}, cut to 2 tokens: out", rows="token"
        )
    chosen = ours(more[order], of_one.index(order, dim=0))[0]
    right = torch.cat([ours(more[[b]], of_one.index([b], dim=0))[0] for b in order])
    assert_close(chosen, right, atol=1e-5, what=f"out after a cache indexed with {order}: out", rows="token")


@claims(
    "Only the new tokens' rows go through the projections.",
    look_at="which tensor your layers get, and what the cache holds",
    needs=("alike_in_train_and_eval", "cache_shape"),
    cases=(sized(B=2, H=3, T=9, D=4),),
)
def test_cost(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    x, new = tokens(sizes), tokens(sizes, 1)
    short = 3
    few, many = (ours.run(new, ours(x[:, :past].contiguous())[1], measure=True).cost.rows for past in (short, sizes.T))

    # How many products a layer makes is free, but a longer past adds no row to them.
    told = f"the layers read {few} rows after {short} tokens, and {many} after {sizes.T}"
    assert_holds(many <= few, f"for one new token of {sizes.B} samples {told}")


# --------------------------------------------------------------------------------------------------------- gradients


test_gradients = standard.gradients(
    module, claim="Gradients to x and to every parameter are those of the definition.", needs="values", cases=SMALL[:1]
)


@claims(
    "With a detached cache, the gradients to x are those of the definition.",
    look_at="whether any step is detached, rounded or done in place",
    needs=("gradients", "chunks"),
    cases=SMALL[:1],
)
def test_gradients_with_cache(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x, new = tokens(sizes), tokens(sizes, 3)
    cotangent = randn(sizes.B, 3, sizes.E)
    got, right = (
        each.run(new, each(x)[1].detached(), cotangent={"out": cotangent}).input_gradients[0] for each in (ours, theirs)
    )

    assert_holds(got is not None, "no gradient reaches x")
    assert_close(got, right, atol=1e-5, what="the gradient of x: grad", rows="token", columns="column")


# ----------------------------------------------------------------------------------------- true of every kata, core


test_output_dtype = standard.output_dtype(module, needs="output_shape", cases=SMALL[:1])
test_float32 = standard.float32(module, needs="values", cases=SMALL[:1])
test_inputs_unmodified = standard.inputs_unmodified(module, needs="output_shape", cases=SMALL[:1])
test_non_contiguous_inputs = standard.non_contiguous_inputs(module, needs="values", cases=SMALL[:1])


@claims(
    "Every tensor is on the device of the inputs.",
    look_at="tensors made without device=",
    needs="chunks",
    cases=SMALL[:1],
)
def test_device(attempt, reference, sizes):
    ours, _ = pair(attempt, reference, sizes)
    x = tokens(sizes)
    check_stays_on_device(ours, x)
    check_stays_on_device(ours, tokens(sizes, 2), ours(x)[1])


# --------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Gradients reach the parameters through the cache, too.",
    tier="edge",
    needs=("gradients", "chunks"),
    cases=SMALL[:1],
    look_at="whether the cache is detached",
)
def test_gradients_through_cache(attempt, reference, sizes):
    ours, theirs = pair(attempt, reference, sizes)
    x, new = tokens(sizes), tokens(sizes, 2)
    cotangent = randn(sizes.B, 2, sizes.E)
    got = ours.run(new, ours(x)[1], cotangent={"out": cotangent}).parameter_gradients
    whole = torch.cat([torch.zeros(sizes.B, sizes.T, sizes.E), cotangent], dim=1)
    right = theirs.run(torch.cat([x, new], dim=1), cotangent={"out": whole}).parameter_gradients

    for name, wanted in right.items():
        gradient = got[name] if got[name] is not None else torch.zeros_like(wanted)
        assert_close(gradient, wanted, atol=1e-5, what=f"the gradient of {name}: grad", rows="row", columns="column")


@claims(
    "Scores of about 1e4 in float32 give finite, right results.",
    tier="edge",
    needs="one_by_one",
    cases=(sized(B=2, H=3, T=4, D=16),),
    look_at="exp of a large number, and what a hidden score becomes",
)
def test_large_scores(attempt, reference, sizes):
    E, H = sizes.E, sizes.H
    # Integers, and D = 16, whose root is 4, so that float32 holds every score exactly.
    weights = {f"{name}.weight": torch.randint(-7, 8, (E, E)).float() for name in LINEAR[:2]}
    weights |= {f"{name}.weight": torch.eye(E) for name in LINEAR[2:]} | {
        f"{name}.bias": torch.zeros(E) for name in LINEAR
    }
    ours = attempt.CachedSelfAttention.loaded(weights, E, H)
    theirs = reference.CachedSelfAttention.loaded({name: weight.double() for name, weight in weights.items()}, E, H)
    x = torch.randint(-7, 8, (sizes.B, sizes.T, E)).double()

    out, _ = decode(ours, x.float(), 1, 1)

    assert_close(out, theirs(x)[0], atol=1e-3, rows="token")


test_half_precision = standard.half_precision(module, needs="values", cases=SMALL[:1])
test_float64_throughout = standard.float64_throughout(module, needs="values", cases=SMALL[:1])
test_own_memory = standard.own_memory(module, needs="output_shape", cases=(SIZES[0], SIZES[5]))
