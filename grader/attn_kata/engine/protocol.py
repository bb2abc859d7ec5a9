"""What a reply has to look like to be an answer to its request, beyond being a reply at all.

Whoever forges replies can promise what it likes within `wire`'s limits; here it is held to what was asked, so that nothing
behind this line meets a gradient too few or a name without a shape.
"""

from __future__ import annotations

import torch
from torch import Tensor

from . import wire


def answers(request: wire.Request, reply: wire.Reply) -> bool:
    """Whether the reply's texts and tensors are what an answer to this request has."""
    if reply.status != wire.OK:
        return not reply.tensors and (bool(reply.texts) or reply.status == wire.NO_MEMORY)
    if request.op == "build":
        return (
            len(reply.texts) == len(reply.tensors)
            and len(set(reply.texts)) == len(reply.texts)
            and all(part.data is None for part in reply.tensors)
        )
    if request.op in ("call", "replay"):
        return _answers_call(request, reply)
    if request.op == "trace":
        return not reply.texts and len(reply.tensors) == 1 and _is_bytes(reply.tensors[0])
    return not reply.texts and not reply.tensors


def _answers_call(request: wire.Request, reply: wire.Reply) -> bool:
    """The result, then the inputs after the call where they were asked for, then the gradients where they were.

    Or the result and the factors of a product that the grader is to make, where there is one.
    """
    fields, parts = request.fields, reply.tensors
    if not parts or (reply.texts and not fields.get("record")):
        return False
    asked_for_a_device = any("device" in described for described in fields["args"])
    if parts[0].data is None and (parts[0].device == wire.CPU or not asked_for_a_device):
        return False
    if fields.get("mixing"):
        asked = fields["mixing"]["answer"] is None
        return len(parts) == 1 or (asked and len(parts) == 3 and all(part.data is not None for part in parts))
    given = [request.tensors[described["tensor"]] for described in fields["args"] if "tensor" in described]
    after = len(given) if fields.get("inputs_after") else 0
    if fields.get("cotangent") is None and fields.get("labels") is None:
        return len(parts) == 1 + after
    inputs = sum(tensor.is_floating_point() for tensor in given)
    gradients = len(parts) - 1 - after
    return bool(gradients == inputs if "name" in fields else gradients >= inputs)


def _is_bytes(part: wire.TensorReply) -> bool:
    return part.data is not None and part.dtype is torch.uint8 and len(part.shape) == 1


def same_tensors(one: wire.Reply, other: wire.Reply) -> bool:
    """Whether two replies say the same and hold the same numbers, NaN where NaN is."""
    if one.status != other.status or len(one.tensors) != len(other.tensors):
        return False
    return all(_same(first, second) for first, second in zip(one.tensors, other.tensors, strict=True))


def _same(one: wire.TensorReply, other: wire.TensorReply) -> bool:
    if (one.shape, one.dtype, one.device) != (other.shape, other.dtype, other.device):
        return False
    if one.data is None or other.data is None:
        return one.data is other.data
    return _close(one.data, other.data)


def _close(one: Tensor, other: Tensor) -> bool:
    """Equal but for rounding: sums may run in another order the second time."""
    if not one.is_floating_point():
        return torch.equal(one, other)
    tolerance = 64 * torch.finfo(one.dtype).eps
    return bool(torch.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True))
