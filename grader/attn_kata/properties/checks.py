"""Checks of one call. The standard properties use them, and a kata's own properties may use them too.

A check takes `ours`, the attempt's function or built module. A check that compares also takes `theirs`, the reference's with
the same weights. Then come the arguments of the call. All raise PropertyFailed, and what the call raises (see `Target.run`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attn_kata.properties.compare import assert_close, assert_shape
from attn_kata.properties.failures import (
    AttemptRaised,
    PropertyFailed,
    RaisedAnother,
    ReadyMade,
    calls_ready_made,
)
from attn_kata.properties.handle import Target
from attn_kata.properties.results import Result

# Words in the names of torch operations, for `blocks`.
FORBIDDEN_ATTENTIONS = (
    "scaled_dot_product",
    "multi_head_attention",
    "MultiheadAttention",
    "nn.Transformer",
    "nn.modules.transformer",
    "flex_attention",
    "_native_multi_head",
    "_transformer_encoder",
    "_flash_attention",
    "_efficient_attention",
    "_triton_multi_head",
    "_fused_sdp",
    "_safe_softmax",
    "fmha",
    "torch.onnx.ops",
    "onnx::Attention",
)
# Autograd, for a backward pass by hand. Where it is blocked, it is also off in every call.
FORBIDDEN_AUTOGRAD = ("torch.autograd.",)
FORBIDDEN_SOFTMAXES = ("softmax", "softmin", "Softmax", "Softmin", "log_softmax", "_safe_softmax")


def check_from_scratch(ours: Target, *args: Any, forbidden: tuple[str, ...], training: bool | None = None) -> None:
    """No operation runs that has one of the words `forbidden` in its torch name. Aliases in the attempt do not matter.

    `training` sets a module's mode first. Raises ReadyMade.
    """
    recording = ours.run(*args, record=True, training=training).recording
    assert recording is not None
    # The name of a torch operation has a namespace. A name without one is the attempt's own (record_function, an
    # autograd.Function). Names with an underscore come last: a public operation may call them.
    operations = sorted((name for name in recording.ops if "::" in name), key=lambda name: ("::_" in name, name))
    for name in (*recording.calls, *operations):
        if any(part in name for part in forbidden):
            raise ReadyMade(calls_ready_made(name))


def check_gradients(
    ours: Target,
    theirs: Target,
    *args: Any,
    atol: float = 1e-5,
    training: bool | None = None,
    of: tuple[str, ...] = (),
) -> None:
    """Gradients to every floating input and every parameter are the reference's, for random cotangents.

    The cotangents have the shapes of the result's tensors, or of those with the names `of`. The differentiated scalar is the
    sum of all `(tensor * cotangent).sum()`.
    """
    cotangent = {
        name: torch.randn(tensor.shape, dtype=torch.float64)
        for name, tensor in theirs.run(*args, training=training).tensors.items()
        if not of or name in of
    }
    right = theirs.run(*args, cotangent=cotangent, training=training)
    result = ours.run(*args, cotangent=cotangent, training=training)
    for name in cotangent:
        what = "the output" if len(right.parts) == 1 else name
        assert_shape(result.tensors[name], tuple(right.tensors[name].shape), what=what)
    for place, (got, wanted) in enumerate(zip(result.input_gradients, right.input_gradients, strict=True), start=1):
        _compare_gradient(got, wanted, f"argument {place}", atol)
    for name, wanted in right.parameter_gradients.items():
        _compare_gradient(result.parameter_gradients.get(name), wanted, name, atol)


def _compare_gradient(got: Tensor | None, wanted: Tensor | None, name: str, atol: float) -> None:
    if wanted is None:
        wanted = None if got is None else torch.zeros_like(got)
    if got is None:
        # A gradient that is 0 up to rounding may be missing. An example is a key bias, which the softmax cancels.
        if wanted is not None and bool((wanted.abs() > atol).any()):
            raise PropertyFailed(f"no gradient reaches {name}")
        return
    assert wanted is not None
    assert_close(got, wanted, atol=atol, what=f"the gradient of {name}: grad", rows="row", columns="column")


def check_leaves_inputs(ours: Target, *args: Any) -> None:
    """The call does not change the shape, dtype or numbers of a tensor argument."""
    given = [value for value in args if isinstance(value, Tensor)]
    changed = what_changed(given, ours.run(*args, inputs_after=True).inputs_after)
    if changed is not None:
        raise PropertyFailed(changed)


def what_changed(given: list[Tensor], after: list[Tensor]) -> str | None:
    """Words for the first input that a call changed, or None if it changed no input."""
    if len(given) != len(after):
        return "the memory of a tensor argument was changed by the call: write to a new tensor"
    for place, (before, now) in enumerate(zip(given, after, strict=True), start=1):
        if before.shape != now.shape or before.dtype != now.dtype:  # k.transpose_(), x.data = x.float()
            became = f"from {_kind(before)} to {_kind(now)}"
            return f"tensor argument {place} was changed by the call, {became}: make a new tensor"
        same = torch.equal(before, now) or bool(((before == now) | (before.isnan() & now.isnan())).all())
        if not same:
            index = [int(i) for i in (before != now).nonzero()[0]]
            return f"tensor argument {place} was changed by the call, first at {index}: write to a new tensor"
    return None


def check_keeps_dtype(ours: Target, *args: Any, dtype: torch.dtype) -> None:
    """If the inputs are in `dtype`, the output is in `dtype` too."""
    _check_dtypes(ours.run(*converted(args, dtype)), dtype)


def _check_dtypes(result: Result, dtype: torch.dtype) -> None:
    for name, tensor in result.tensors.items():
        if tensor.dtype != dtype:
            its = "an output" if len(result.parts) == 1 else f"as {name} a tensor"
            raise PropertyFailed(f"inputs of {_name(dtype)} give {its} of {_name(tensor.dtype)}")


def check_computes_in_dtype(
    ours: Target,
    theirs: Target,
    *args: Any,
    dtype: torch.dtype,
    terms: int,
    close: Callable[..., None],
) -> None:
    """In `dtype` the output has that dtype and is right up to about sqrt(terms) roundings of numbers near 1.

    `theirs` computes in float64 on the same rounded numbers. The tolerance is 8 eps sqrt(terms), with at least 4 terms:
    the errors of independent roundings add up like a random walk (Higham and Mary, 2019). `close(actual, expected, atol=…)`
    compares two results.
    """
    rounded = converted(args, dtype)
    right = theirs.run(*converted(rounded, torch.float64))
    result = ours.run(*rounded)
    _check_dtypes(result, dtype)
    close(result, right, atol=8 * torch.finfo(dtype).eps * max(terms, 4) ** 0.5)


def check_own_memory(ours: Target, *args: Any) -> None:
    """Writing into the output later does not change an input: they share no memory."""
    if ours.run(*args).shares_input:
        raise PropertyFailed("the output shares memory with an input: writing into one changes the other")


def check_stays_on_device(ours: Target, *args: Any) -> None:
    """No tensor is made on the default device and then used together with an input, or returned.

    There is only one device here. So this check relies on the record of the attempt process: no number shows the mistake.
    """
    recording = ours.run(*args, devices=True).recording
    assert recording is not None
    if recording.strays:
        raise PropertyFailed(
            f"in {recording.strays[0]} a tensor is on the wrong device: it was made on the default device, not on that of "
            "the inputs. On a GPU this raises an error, or the output is on the CPU"
            if recording.strays[0] != "the result"
            else "the output is on the wrong device: it was made on the default device, not on that of the inputs"
        )


def strided(value: Tensor) -> Tensor:
    """The same numbers in a non-contiguous tensor: reversed dimensions with gaps, so that no two can be merged."""
    backwards = tuple(reversed(range(value.dim())))
    return torch.stack([value.permute(backwards)] * 2, dim=-1)[..., 0].permute(backwards)


def check_raises_value_error(action: Callable[[], object], what: str) -> None:
    """`action` raises ValueError or a class derived from it (not AssertionError). `what` names the call in the message."""
    try:
        action()
    except AttemptRaised as failure:
        if failure.not_written:
            raise
        raised = failure.raised
        if "ValueError" not in raised.types:
            kind = raised.types[0]
            said = f"{what} raises {kind}, not ValueError"
            if raised.frames and raised.frames[0][1] == "forward":  # the module was built, and then called
                line, function = raised.frames[-1]
                said = f"{what} does not raise ValueError. Its call raises {kind}: {raised.text}, line {line} in {function}"
            raise RaisedAnother(said, raised) from None
        return
    except PropertyFailed:
        raise PropertyFailed(f"{what} does not raise ValueError") from None
    raise PropertyFailed(f"{what} does not raise ValueError")


def converted(args: tuple[Any, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    """`args` with their floating tensors in `dtype`."""
    return tuple(
        value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value for value in args
    )


def _kind(value: Tensor) -> str:
    return f"{_name(value.dtype)} of shape {tuple(value.shape)}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
