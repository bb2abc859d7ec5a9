"""Holds a reply to what was asked, beyond being a reply at all.

A forger can promise anything within the limits of `wire`. Here the reply is compared with its request, so that no code after
this meets a missing gradient or a name without a shape.
"""

from __future__ import annotations

from attn_kata.protocol import wire
from attn_kata.protocol.messages import Build, Call, Request


def answers(request: Request, reply: wire.Reply) -> bool:
    """Whether the reply's texts and tensors are what an answer to this request has."""
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
    return not reply.texts and not reply.tensors


def _answers_call(request: Call, reply: wire.Reply) -> bool:
    """The result, then the inputs after the call where they were asked for, then the gradients where they were."""
    parts = reply.tensors
    if not parts or (reply.texts and not request.record):
        return False
    asked_for_a_device = any(kind == "device" for kind, _ in request.args)
    if parts[0].data is None and (parts[0].device == wire.CPU or not asked_for_a_device):
        return False
    given = [request.tensors[value] for kind, value in request.args if kind == "tensor"]
    after = len(given) if request.inputs_after else 0
    if request.cotangent is None and request.labels is None:
        return len(parts) == 1 + after
    inputs = sum(tensor.is_floating_point() for tensor in given)
    gradients = len(parts) - 1 - after
    return gradients == inputs if request.module is None else gradients >= inputs
