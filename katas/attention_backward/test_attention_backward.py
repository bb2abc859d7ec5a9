"""Hidden tests of attention_backward: each tests one property of the contract in prompt.md."""

import torch

from attn_kata.properties import (
    FORBIDDEN_ATTENTIONS,
    FORBIDDEN_AUTOGRAD,
    Drawn,
    PropertyFailed,
    Sizes,
    assert_close,
    assert_holds,
    assert_shape,
    claims,
    randn,
    standard,
)
from attn_kata.properties.checks import (
    check_from_scratch,
    check_leaves_inputs,
    check_stays_on_device,
    converted,
    strided,
)

SIZES = (
    Sizes(B=2, H=3, Tq=4, Tk=5, D=7, Dv=6),
    Sizes(B=3, H=2, Tq=6, Tk=4, D=5, Dv=8),
    Sizes(B=2, H=5, Tq=1, Tk=3, D=6, Dv=4),
    Sizes(B=4, H=3, Tq=5, Tk=1, D=2, Dv=7),
    Sizes(B=1, H=1, Tq=3, Tk=4, D=1, Dv=1),
    Sizes(B=3, H=3, Tq=3, Tk=3, D=3, Dv=3),
    Sizes(B=1, H=2, Tq=3, Tk=4, D=70, Dv=66),
    Sizes(B=1, H=1, Tq=131, Tk=150, D=3, Dv=2),
    Drawn(B=(1, 4), H=(1, 4), Tq=(1, 40), Tk=(1, 40), D=(1, 24), Dv=(1, 24)),
)
SMALL = SIZES[:2]
GRADIENTS = ("grad_q", "grad_k", "grad_v")


def qkv(sizes):
    """q (B, H, Tq, D), k (B, H, Tk, D), v (B, H, Tk, Dv)."""
    lead = (sizes.B, sizes.H)
    return randn(*lead, sizes.Tq, sizes.D), randn(*lead, sizes.Tk, sizes.D), randn(*lead, sizes.Tk, sizes.Dv)


def grad_of(sizes):
    return randn(sizes.B, sizes.H, sizes.Tq, sizes.Dv)


def some_kept(*shape):
    """Random flags; no row is all False."""
    return (torch.rand(*shape) < 0.5) | (torch.arange(shape[-1]) == torch.randint(shape[-1], (*shape[:-1], 1)))


def calls(sizes):
    return [qkv(sizes), (*qkv(sizes), some_kept(sizes.B, 1, sizes.Tq, sizes.Tk))]


def gradients_of(handle, grad_out, *given):
    """grad_q, grad_k and grad_v of one forward and one backward pass."""
    _, saved = handle.attention_forward(*given)
    return handle.attention_backward(grad_out, saved)


def compare(actual, expected, *, what="", atol=1e-5):
    for name, got, right in zip(GRADIENTS, actual, expected, strict=True):
        assert_close(
            got, right, atol=atol, what=f"{name}{what}: {name}" if what else name, rows="row", columns="column"
        )


forward = standard.function(
    "attention_forward", calls, inputs="q, k, v and mask", terms=lambda sizes: sizes.Tk * sizes.D
)


@claims(
    "No ready-made attention is called, and no autograd.",
    look_at="what the contract forbids",
    blocks=(*FORBIDDEN_ATTENTIONS, *FORBIDDEN_AUTOGRAD),
    cases=(SIZES[0], SIZES[7]),
)
def test_from_scratch(attempt, sizes):
    forbidden = (*FORBIDDEN_ATTENTIONS, *FORBIDDEN_AUTOGRAD)
    for dtype in (torch.float64, torch.float32):
        for given in calls(sizes):
            given = converted(given, dtype)
            check_from_scratch(attempt.attention_forward, *given, forbidden=forbidden)
            _, saved = attempt.attention_forward(*given)
            check_from_scratch(attempt.attention_backward, grad_of(sizes).to(dtype), saved, forbidden=forbidden)


# ---------------------------------------------------------------------------------------------------------- forward


@claims(
    "attention_forward gives (out, saved), and out has the shape (B, H, Tq, Dv).",
    look_at="which dimension the weights sum over",
    cases=SIZES[:6],
)
def test_forward_shape(attempt, sizes):
    out, _ = attempt.attention_forward(*qkv(sizes))

    assert_shape(out, (sizes.B, sizes.H, sizes.Tq, sizes.Dv))


@claims(
    "out is softmax(q kᵀ / sqrt(D)) v.",
    look_at="the scale, and the dimension of the softmax",
    needs="forward_shape",
    cases=SIZES,
)
def test_out(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    for _ in range(2):  # a second call must be right too
        assert_close(attempt.attention_forward(q, k, v)[0], reference.attention_forward(q, k, v)[0], atol=1e-5)
        q = q.flip(-2)


@claims(
    "With a mask, out is attention among the keys that each query may attend to.",
    look_at="what True means, and which dimension is keys",
    needs="out",
    cases=(*SMALL, SIZES[5], SIZES[8]),
)
def test_mask_in_out(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    for shape in masks(sizes):
        mask = some_kept(*shape)
        right = reference.attention_forward(q, k, v, mask)[0]
        assert_close(
            attempt.attention_forward(q, k, v, mask)[0], right, atol=1e-5, what=f"out with a mask of {shape}: out"
        )


def masks(sizes):
    return (sizes.Tq, sizes.Tk), (sizes.B, 1, 1, sizes.Tk), (sizes.B, sizes.H, sizes.Tq, sizes.Tk), (1, sizes.Tk)


@claims(
    "saved is a flat tuple or list of tensors, None, bools and numbers.",
    look_at="the second part of what attention_forward returns",
    needs="forward_shape",
    cases=SMALL[:1],
)
def test_saved(attempt, sizes):
    for given in calls(sizes):
        _, saved = attempt.attention_forward(*given)
        if saved.kind not in ("tuple", "list"):
            raise PropertyFailed(f"saved is {saved.kind}; the contract asks for a flat tuple or list")
        assert_holds("other" not in saved.items, "saved holds something that is no tensor, None, bool or number")


# ---------------------------------------------------------------------------------------------------------- backward


@claims(
    "attention_backward gives (grad_q, grad_k, grad_v), of the shapes of q, k and v.",
    look_at="which product gives the gradient of which factor",
    needs="forward_shape",
    cases=SIZES[:6],
)
def test_backward_shape(attempt, sizes):
    given = qkv(sizes)
    for name, grad, part in zip(GRADIENTS, gradients_of(attempt, grad_of(sizes), *given), given, strict=True):
        assert_shape(grad, tuple(part.shape), what=name)


@claims(
    "Without a mask, grad_q, grad_k and grad_v are the gradients of the definition.",
    look_at="each step of the forward pass, from the last to the first: the scale, the softmax, the transposes",
    needs="backward_shape",
    cases=SIZES,
)
def test_gradients(attempt, reference, sizes):
    for _ in range(2):
        given, grad_out = qkv(sizes), grad_of(sizes)
        compare(gradients_of(attempt, grad_out, *given), gradients_of(reference, grad_out, *given))


@claims(
    "With a mask of any shape that broadcasts, the gradients are those of the definition too.",
    look_at="what the gradient of a masked score is, and whether the mask is saved",
    needs=("gradients", "mask_in_out"),
    cases=(*SMALL, SIZES[5], SIZES[8]),
)
def test_mask(attempt, reference, sizes):
    for shape in masks(sizes):
        given, grad_out = (*qkv(sizes), some_kept(*shape)), grad_of(sizes)
        compare(
            gradients_of(attempt, grad_out, *given),
            gradients_of(reference, grad_out, *given),
            what=f" with a mask of {shape}",
        )


@claims(
    "Several forward passes may come before a backward pass.",
    look_at="whether anything but saved is used",
    needs="gradients",
    cases=SMALL[:1],
)
def test_several_forwards(attempt, sizes):
    grad_out = grad_of(sizes)
    texts = [qkv(sizes), qkv(sizes), [part[:1] for part in qkv(sizes)]]
    alone = [gradients_of(attempt, grad_out[: len(given[0])], *given) for given in texts]
    saved = [attempt.attention_forward(*given)[1] for given in texts]

    for one, right in zip(saved, alone, strict=True):
        count = right[0].shape[0]
        compare(attempt.attention_backward(grad_out[:count], one), right, what=" after several forward passes")


@claims(
    "A second backward pass with the same saved gives the same.",
    look_at="in-place operations on what was saved",
    needs="backward_shape",
    cases=SMALL[:1],
)
def test_saved_unmodified(attempt, sizes):
    for given in calls(sizes):
        grad_out = grad_of(sizes)
        _, saved = attempt.attention_forward(*given)
        first = attempt.attention_backward(grad_out, saved)
        compare(attempt.attention_backward(grad_out, saved), first, what=" of a second backward pass")


# ----------------------------------------------------------------------------------------- true of every kata, core


@claims(
    "The results have the dtype of the inputs, in float32 and float64.",
    look_at="conversions of the dtype, and tensors made without dtype=",
    needs="backward_shape",
    cases=SMALL[:1],
)
def test_output_dtype(attempt, sizes):
    for dtype in (torch.float32, torch.float64):
        for given in calls(sizes):
            out, saved = attempt.attention_forward(*converted(given, dtype))
            results = attempt.attention_backward(grad_of(sizes).to(dtype), saved)
            for name, part in zip(("out", *GRADIENTS), (out, *results), strict=True):
                given_in, found = (str(one).removeprefix("torch.") for one in (dtype, part.dtype))
                assert_holds(part.dtype == dtype, f"inputs of {given_in} give as {name} a tensor of {found}")


def in_dtype(attempt, reference, sizes, dtype):
    """The gradients are right up to about sqrt(terms) roundings, on the same rounded numbers."""
    for given in calls(sizes):
        rounded, grad_out = converted(given, dtype), grad_of(sizes).to(dtype)
        right = gradients_of(reference, grad_out.double(), *converted(rounded, torch.float64))
        terms = max(sizes.Tq, sizes.Tk) * max(sizes.D, sizes.Dv)
        atol = 8 * torch.finfo(dtype).eps * max(terms, 4) ** 0.5
        compare(
            gradients_of(attempt, grad_out, *rounded), right, atol=atol, what=f" in {str(dtype).removeprefix('torch.')}"
        )


@claims(
    "In float32 the gradients are right within float32's rounding.",
    look_at="arithmetic in a narrower dtype than float32",
    needs="mask",
    cases=SMALL,
)
def test_float32(attempt, reference, sizes):
    in_dtype(attempt, reference, sizes, torch.float32)


@claims(
    "The calls do not change q, k, v, mask and grad_out.",
    look_at="in-place operations on the arguments",
    needs="backward_shape",
    cases=SMALL[:1],
)
def test_inputs_unmodified(attempt, sizes):
    for given in calls(sizes):
        check_leaves_inputs(attempt.attention_forward, *given)
        _, saved = attempt.attention_forward(*given)
        check_leaves_inputs(attempt.attention_backward, grad_of(sizes), saved)


@claims(
    "grad_out and the other inputs may be in any memory layout.",
    look_at="view on a tensor whose layout you do not know",
    needs="mask",
    cases=SMALL,
)
def test_non_contiguous_inputs(attempt, reference, sizes):
    for given in calls(sizes):
        grad_out = grad_of(sizes)
        right = gradients_of(reference, grad_out, *given)
        laid_out = [strided(part) for part in given]
        compare(
            gradients_of(attempt, strided(grad_out), *given), right, what=" of grad_out stored in reverse, with gaps"
        )
        compare(gradients_of(attempt, grad_out, *laid_out), right, what=" of inputs stored in reverse, with gaps")
        ones = torch.ones(()).double().expand(grad_out.shape)  # as the gradient of a sum is
        right = gradients_of(reference, ones.contiguous(), *given)
        compare(gradients_of(attempt, ones, *given), right, what=" of an expanded grad_out")


@claims(
    "Every tensor is on the device of the inputs.",
    look_at="tensors made without device=",
    needs="backward_shape",
    cases=SMALL[:1],
)
def test_device(attempt, sizes):
    for given in calls(sizes):
        check_stays_on_device(attempt.attention_forward, *given)
        check_stays_on_device(attempt.attention_backward, grad_of(sizes), attempt.attention_forward(*given)[1])


# --------------------------------------------------------------------------------------------------- beyond the bar


@claims(
    "Without a mask, no saved tensor has more elements than the largest of q, k, v and out.",
    tier="edge",
    needs="gradients",
    cases=(Sizes(B=2, H=2, Tq=30, Tk=40, D=4, Dv=3),),
    look_at="what can be computed again",
)
def test_saved_is_small(attempt, sizes):
    _, saved = attempt.attention_forward(*qkv(sizes))
    allowed = sizes.B * sizes.H * max(sizes.Tq, sizes.Tk) * max(sizes.D, sizes.Dv)
    for item in saved.items:
        if not isinstance(item, str):
            count = torch.Size(item[0]).numel()
            assert_holds(
                count <= allowed, f"a saved tensor of shape {item[0]} has {count:,} elements; {allowed:,} are enough"
            )


@claims(
    "Masked scores far above the kept ones do no harm.",
    tier="edge",
    needs="mask",
    cases=SMALL[:1],
    look_at="which scores the maximum is taken of, and 0 times infinity",
)
def test_masked_far_above(attempt, reference, sizes):
    q, k, v = qkv(sizes)
    mask = torch.ones(sizes.B, 1, 1, sizes.Tk, dtype=torch.bool)
    mask[..., 1] = False
    far, grad_out = k.clone(), grad_of(sizes)
    far[..., 1, :] = 400 * q[..., 0, :]  # a masked key whose score with the first query is in the hundreds

    right = gradients_of(reference, grad_out, q, far, v, mask)
    compare(gradients_of(attempt, grad_out, q, far, v, mask), right, what=" with a large masked score")


@claims(
    "float16 and bfloat16 work.",
    tier="edge",
    needs="mask",
    cases=SMALL[:1],
    look_at="constants that the dtype cannot hold",
)
def test_half_precision(attempt, reference, sizes):
    for dtype in (torch.float16, torch.bfloat16):
        in_dtype(attempt, reference, sizes, dtype)


@claims(
    "float64 is kept throughout: exact to 1e-9.",
    tier="edge",
    needs="mask",
    cases=SMALL[:1],
    look_at="conversions to float32 in any step",
)
def test_float64_throughout(attempt, reference, sizes):
    for given in calls(sizes):
        grad_out = grad_of(sizes)
        compare(gradients_of(attempt, grad_out, *given), gradients_of(reference, grad_out, *given), atol=1e-9)


test_own_memory = standard.own_memory(forward, needs="forward_shape", cases=(SIZES[0], SIZES[3]))
