"""Which of torch's operations a trace may hold: those that check their arguments, however wild, and those of `backward`.

Whoever writes a trace by hand may ask for sizes and places that no call of torch's Python would. What is listed here raises
then, where some other operations (of sparse, quantised or nested tensors, `_reshape_alias`, `resize_`) trust whoever calls.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import torch

from . import backward

_POINTWISE = """
    abs absolute add addcdiv addcmul arctan asinh atan atan2 bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min clip copysign cos cosh deg2rad div divide elu eq
    equal erf erfc exp exp2 expm1 fill floor floor_divide fmax fmin fmod frac ge gelu gt heaviside hypot isclose isfinite
    isinf isnan isneginf isposinf ldexp le leaky_relu lerp log log10 log1p log2 log_sigmoid_forward logaddexp logaddexp2
    logical_and logical_not logical_or logical_xor logit lt masked_fill maximum minimum mish mul multiply nan_to_num ne neg
    negative positive pow reciprocal relu relu6 remainder round rsqrt rsub sgn sigmoid sign signbit silu sin sinh softplus
    sqrt square sub subtract tan tanh threshold true_divide trunc where xlogy zero
    complex conj _conj conj_physical
"""
_REDUCTIONS = """
    all _is_all_true amax amin aminmax any _is_any_true argmax argmin argsort count_nonzero cummax cummin cumprod cumsum dist
    linalg_norm linalg_vector_norm _log_softmax log_softmax logcumsumexp logsumexp max mean median min nanmean nansum norm
    prod _safe_softmax _softmax softmax sort std std_mean sum topk var var_mean
"""
_PRODUCTS = """
    addbmm addmm addmv addr baddbmm bmm _cdist_forward chain_matmul conv1d conv2d convolution _convolution cosine_similarity
    cross dot einsum _euclidean_dist ger inner kron linalg_matmul linalg_vecdot linear matmul mm mv outer tensordot
    _trilinear vdot
"""
_SHAPES = """
    alias as_strided atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors broadcast_to cat chunk clone col2im
    column_stack concat constant_pad_nd contiguous copy detach diag diag_embed diagonal dsplit dstack expand expand_as
    flatten flip fliplr flipud hsplit hstack im2col lift lift_fresh lift_fresh_copy meshgrid moveaxis movedim mT narrow
    narrow_copy numpy_T pad permute ravel repeat repeat_interleave reshape resolve_conj resolve_neg roll rot90 select
    select_copy slice slice_copy split split_with_sizes squeeze stack swapaxes swapdims t tensor_split tile to _to_copy
    transpose tril triu type_as unbind unflatten unfold unsafe_chunk unsafe_split unsafe_split_with_sizes _unsafe_view
    unsqueeze view view_as view_as_complex view_as_real vsplit vstack
"""
_PLACES = """
    bucketize embedding gather index index_add index_copy index_fill index_put index_select masked_scatter masked_select
    nonzero one_hot scatter scatter_add scatter_reduce searchsorted select_scatter slice_scatter take take_along_dim
    tril_indices triu_indices
"""
_MADE = """
    arange bernoulli dropout empty empty_like empty_permuted empty_strided eye full full_like linspace native_dropout
    new_empty new_empty_strided new_full new_ones new_zeros normal ones ones_like rand rand_like randint randint_like randn
    randn_like randperm scalar_tensor uniform zeros zeros_like
"""
_CARRIED_OUT = frozenset(" ".join((_POINTWISE, _REDUCTIONS, _PRODUCTS, _SHAPES, _PLACES, _MADE, backward.OPERATIONS)).split())
_TRUSTING = frozenset(("as_strided_",))  # its sizes may overflow, and lead anywhere in memory; `as_strided` looks at them
_NAME = re.compile(r"aten\.([a-zA-Z_]\w{0,80})\.(\w{1,40})", re.ASCII)
_KINDS = torch.dtype, torch.layout, torch.memory_format
_KINDS_IN_SCHEMAS = "ScalarType", "Layout", "MemoryFormat"


def is_name(name: str) -> bool:
    """Whether it can be an operation's name, and can be shown."""
    return _NAME.fullmatch(name) is not None


def find(name: str) -> torch._ops.OpOverload[..., Any] | None:
    """The operation of a name like `aten.add_.Tensor`, where it is one of these or such a one in place; else None."""
    found = _NAME.fullmatch(name)
    if found is None or found[1] in _TRUSTING or _CARRIED_OUT.isdisjoint((found[1], found[1].removesuffix("_"))):
        return None
    overload = "" if found[2] == "default" else f".{found[2]}"
    # TorchScript has operations on numbers and lists under the same names, which the dispatcher does not know.
    if not torch._C._dispatch_has_kernel(f"aten::{found[1]}{overload}"):
        return None
    operation: torch._ops.OpOverload[..., Any] = getattr(getattr(torch.ops.aten, found[1]), found[2])
    return operation


def names_kinds_by_number(operation: torch._ops.OpOverload[..., Any], args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a dtype or a layout is told as a number: torch takes any, and looks up its table of dtypes beyond its end."""
    kinds = _takes_kinds(operation)
    told = [args[place] for place, _ in kinds if place < len(args)]
    told += [kwargs[name] for _, name in kinds if name in kwargs]
    return any(value is not None and not isinstance(value, _KINDS) for value in told)


@functools.cache
def _takes_kinds(operation: torch._ops.OpOverload[..., Any]) -> tuple[tuple[int, str], ...]:
    """The places and names of the arguments that are dtypes, layouts or memory formats."""
    return tuple(
        (place, argument.name)
        for place, argument in enumerate(operation._schema.arguments)
        if any(kind in str(argument.real_type) for kind in _KINDS_IN_SCHEMAS)
    )
