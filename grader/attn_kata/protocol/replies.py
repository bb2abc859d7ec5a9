"""Checks that a reply fits its request. `wire` has checked before that it is a reply at all.

An attempt can forge any reply within the limits of `wire`. After this check, no later code meets a missing gradient or a name
without a shape.
"""

from __future__ import annotations

from attn_kata.protocol import wire
from attn_kata.protocol.messages import Build, Call, Load, Request


def answers(request: Request, reply: wire.Reply) -> bool:
    """Whether the reply has the texts and tensors that an answer to this request must have."""
    if reply.status != wire.OK:
        return not reply.tensors and (bool(reply.texts) or reply.status == wire.NO_MEMORY)
    if isinstance(request, Build):
        return (
            len(reply.texts) == len(reply.tensors)
            and len(set(reply.texts)) == len(reply.texts)
            and all(part.data is None for part in reply.tensors)
        )
    if isinstance(request, Call):
        return _answers_call(request, reply)
    if isinstance(request, Load):  # its texts describe the exception that ended the source after its definitions
        return not reply.tensors
    return not reply.texts and not reply.tensors


def _answers_call(request: Call, reply: wire.Reply) -> bool:
    """The tensors must be the result, then the inputs after the call if requested, then the gradients if requested."""
    parts = reply.tensors
    if not parts or (reply.texts and not request.record):
        return False
    device_requested = any(kind == "device" for kind, _ in request.args)
    if parts[0].data is None and (parts[0].device == wire.CPU or not device_requested):
        return False
    given = [request.tensors[value] for kind, value in request.args if kind == "tensor"]
    inputs_after = len(given) if request.inputs_after else 0
    if request.cotangent is None and request.labels is None:
        return len(parts) == 1 + inputs_after
    inputs = sum(tensor.is_floating_point() for tensor in given)
    gradients = len(parts) - 1 - inputs_after
    return gradients == inputs if request.module is None else gradients >= inputs
