"""Checks that a reply fits its request. `wire` has checked before that it is a reply at all.

An attempt can forge any reply within the limits of `wire`. After this check, no later code meets a missing gradient or a name
without a shape.
"""

from __future__ import annotations

import re

from attn_kata.protocol import wire
from attn_kata.protocol.messages import AS_GIVEN, OPAQUE, Build, Call, Load, Request

# What an opaque part is: a tuple or a list with a word for each item, or else what it is instead.
ITEMS = ("tensor", "none", "bool", "number", "other")
_FORM = re.compile(rf"(tuple|list):((?:{'|'.join(ITEMS)})(?:,(?:{'|'.join(ITEMS)}))*)?|other:.*", re.DOTALL)


def answers(request: Request, reply: wire.Reply) -> bool:
    """Whether the reply has the texts and tensors that an answer to this request must have."""
    if reply.status != wire.OK:
        return not reply.tensors and (bool(reply.texts) or reply.status == wire.NO_MEMORY)
    if isinstance(request, Build):
        if request.weights and reply.texts == (AS_GIVEN,) and not reply.tensors:
            return True
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
    """The tensors must be the result and its opaque parts', then the inputs after the call, then the gradients if requested."""
    if request.trace:
        return len(reply.tensors) == 1 and reply.tensors[0].data is not None
    opaque = sum(name.startswith(OPAQUE) for name in request.returns)
    results = len(request.returns or "1") - opaque
    parts, forms = reply.tensors, reply.texts[:opaque]
    told = len(reply.texts) == opaque or request.record or request.devices or request.measure
    if len(forms) < opaque or not all(map(_FORM.fullmatch, forms)) or not told:
        return False
    described = sum(form_items(form).count("tensor") for form in forms)
    if len(parts) < results + described:
        return False
    device_requested = any(kind == "device" for kind, _ in request.args)
    for part in parts[:results]:
        if part.data is None and (part.device == wire.CPU or not device_requested):
            return False
    if any(part.data is not None for part in parts[results : results + described]):
        return False
    given = [request.tensors[value] for kind, value in request.args if kind == "tensor"]
    gradients = len(parts) - results - described - (len(given) if request.inputs_after else 0)
    if not request.cotangents and request.labels is None:
        return gradients == 0
    inputs = sum(tensor.is_floating_point() for tensor in given)
    return gradients == inputs if request.module is None else gradients >= inputs


def form_items(form: str) -> tuple[str, ...]:
    """The words for the items of an opaque part, in order; none if it is neither a tuple nor a list."""
    kind, _, items = form.partition(":")
    return tuple(items.split(",")) if kind != "other" and items else ()
