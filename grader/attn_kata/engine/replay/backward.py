"""Steps of a backward pass, carried out for a trace that may be written by hand.

Forward operations check what they are given, but for one: `repeat_interleave` looks at each count after it has written what
the ones before it say, wherever that is. Of their backward operations, which nothing but torch's own autograd calls, many
do not, and read or write past the ends of memory: those are made to here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

OPERATIONS = """
    _cdist_backward convolution_backward diagonal_backward elu_backward embedding_dense_backward gelu_backward glu_backward
    hardtanh_backward leaky_relu_backward log_sigmoid_backward logit_backward _log_softmax_backward_data masked_scatter_backward
    mish_backward native_dropout_backward select_backward sigmoid_backward silu_backward slice_backward _softmax_backward_data
    softplus_backward tanh_backward threshold_backward unfold_backward value_selecting_reduction_backward
"""
_ONE_LAYOUT = frozenset(
    (
        "elu_backward", "gelu_backward", "hardtanh_backward", "leaky_relu_backward", "log_sigmoid_backward", "logit_backward",
        "mish_backward", "_log_softmax_backward_data", "sigmoid_backward", "silu_backward", "_softmax_backward_data",
        "softplus_backward", "tanh_backward", "threshold_backward",
    )
)  # fmt: skip

_MOST_REPEATED = 1 << 40


def checked(call: torch._ops.OpOverload[..., Any]) -> Callable[..., Any]:
    """An operation as a function that raises ValueError for what it would not check itself."""
    name = call._schema.name.removeprefix("aten::")
    if name in _BY_FORWARD:
        return _BY_FORWARD[name]
    check = _check_layout if name in _ONE_LAYOUT else _check_counts if name == "repeat_interleave" else None
    if check is None:
        return call

    def carry_out(*args: Any, **kwargs: Any) -> Any:
        check(call, args, kwargs)
        return call(*args, **kwargs)

    return carry_out


def _check_layout(call: torch._ops.OpOverload[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Raise ValueError where the tensors are not of one size and dtype."""
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    if any((value.shape, value.dtype) != (tensors[0].shape, tensors[0].dtype) for value in tensors):
        raise ValueError(f"{call} of tensors of different sizes or dtypes")


def _check_counts(call: torch._ops.OpOverload[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Raise ValueError where some are negative, or so many together that their sum overflows."""
    place = [argument.name for argument in call._schema.arguments].index("repeats")
    counts = kwargs["repeats"] if "repeats" in kwargs else args[place]
    if isinstance(counts, Tensor) and (bool((counts < 0).any()) or float(counts.double().sum()) > _MOST_REPEATED):
        raise ValueError("repeat_interleave with counts that are none")


def _through(forward: Callable[..., Tensor], gradient: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """The gradients of `inputs` where `forward` of them has this one."""
    leaves = [value.detach().requires_grad_() for value in inputs]
    with torch.enable_grad():
        output = forward(*leaves)
        if output.shape != gradient.shape or output.dtype != gradient.dtype:
            raise ValueError(f"a gradient of shape {tuple(gradient.shape)} for an output of {tuple(output.shape)}")
        # Of a scalar, because the first `grad_outputs` that torch is given makes it import half a second's worth of sympy.
        return torch.autograd.grad((output * gradient).sum(), leaves)


def _cdist(gradient: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    return _through(lambda x: torch.ops.aten._cdist_forward(x, x2, p, None), gradient, x1)[0]


def _convolution(
    gradient: Tensor, given: Tensor, weight: Tensor, bias_sizes: list[int] | None, *how: Any
) -> tuple[Tensor | None, ...]:
    *settings, wanted = how  # wanted: whether it is of the input, of the weight, of the bias
    found = _through(lambda x, w: torch.ops.aten.convolution(x, w, None, *settings), gradient, given, weight)
    of_bias = gradient.transpose(0, 1).flatten(1).sum(1)
    return tuple(value if is_wanted else None for value, is_wanted in zip((*found, of_bias), wanted, strict=True))


def _embedding(gradient: Tensor, indices: Tensor, count: int, padding: int, by_frequency: bool) -> Tensor:
    weight = gradient.new_zeros(count, gradient.shape[-1])
    return _through(lambda w: torch.ops.aten.embedding(w, indices, padding, by_frequency), gradient, weight)[0]


def _unfold(gradient: Tensor, sizes: list[int], dimension: int, size: int, step: int) -> Tensor:
    return _through(lambda x: x.unfold(dimension, size, step), gradient, gradient.new_zeros(sizes))[0]


_BY_FORWARD: dict[str, Callable[..., Any]] = {
    "_cdist_backward": _cdist,
    "convolution_backward": _convolution,
    "embedding_dense_backward": _embedding,
    "unfold_backward": _unfold,
}
