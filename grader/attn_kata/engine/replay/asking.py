"""The hidden tests' two ways to ask for traces and for what comes of them: first of the attempt, then where it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ...properties.checks import what_changed
from ...properties.handle import Transport
from .. import wire
from .running import Forbidden, NotATrace

_UNKNOWN = wire.Reply(status=wire.BAD_RESULT, texts=(NotATrace.kind, "the attempt was not asked this"), tensors=())
MOST_BYTES = 64 << 20  # of all traces together: they are kept until they are carried out
_CANNOT = ("record", "mixing", "cotangent", "labels")  # what a traced call cannot be asked for


class Traced:
    """Asks the attempt for traces, with other numbers than the tests', and gives the tests the answers of the reference.

    What was learnt is in `built` and `traces`, by question. The numbers that are only sent here say nothing about those that
    the tests ask about: only which of them are 0 or not finite, and whatever is no floating number, is the same.
    """

    def __init__(self, attempt: Transport, reference: Transport) -> None:
        self._attempt, self._reference = attempt, reference
        self._drawing = torch.Generator()
        self._drawing.seed()
        self._loaded: dict[int, list[str]] = {}  # by module, the names of the weights that it was given
        self.built: dict[bytes, wire.Reply] = {}
        self.traces: dict[bytes, Tensor] = {}
        self.not_followed: str | None = None

    @property
    def generation(self) -> int:
        return self._attempt.generation

    def ask(self, request: wire.Request) -> wire.Reply:
        """The reply of the attempt where it is none to go on with, else the reference's. Raises AttemptDied."""
        fields = request.fields
        sent = replace(request, tensors=tuple(_another(tensor, self._drawing) for tensor in request.tensors))
        if request.op != "call":
            reply = self._attempt.ask(sent)
            if reply.status == wire.OK:
                self._reference.ask(request)
                if fields["names"]:
                    self._loaded[fields["module"]] = fields["names"]
                self.built[wire.encode_question(request)] = reply
            return reply
        if any(fields.get(name) not in (None, False) for name in _CANNOT):
            raise ValueError(f"a traced call cannot be asked for {', '.join(_CANNOT)}")
        known = self._loaded.get(fields.get("module", -1), [])
        # What is looked at afterwards is nothing to be told: an attempt could do otherwise there.
        told = {**fields, "weights": known, "inputs_after": False}
        reply = self._attempt.ask(replace(sent, op="trace", fields=told))
        if reply.status != wire.OK:
            return reply
        trace = reply.tensors[0].data
        assert trace is not None
        if len(trace) + sum(map(len, self.traces.values())) > MOST_BYTES:
            self.not_followed = f"its traces are more than {MOST_BYTES >> 20} MiB together"
            return wire.Reply(status=wire.BAD_RESULT, texts=(NotATrace.kind, self.not_followed), tensors=())
        self.traces[wire.encode_question(request)] = trace
        return self._reference.ask(request)


class Replayed:
    """Has the traces carried out for what the tests ask about, by a process that the attempt never ran in.

    `forbidden` is a forbidden operation that is in one of them, `not_followed` why one could not be carried out, `changed` what
    one did to an input where the tests do not ask for that: an attempt can tell the calls in which they do by counting.
    """

    def __init__(self, replaying: Transport, traced: Traced, forbidden: list[str]) -> None:
        self._replaying, self._traced, self._forbidden = replaying, traced, forbidden
        self._weights: dict[int, dict[str, Tensor]] = {}
        self.generation = 0
        self.forbidden: str | None = None
        self.not_followed: str | None = None
        self.changed: str | None = None

    def ask(self, request: wire.Request) -> wire.Reply:
        """The reply to what the attempt was asked for before. Raises AttemptDied, of the other process."""
        question = wire.encode_question(request)
        if request.op == "call":
            trace = self._traced.traces.get(question)
            return _UNKNOWN if trace is None else self._replay(request, trace)
        names = request.fields["names"]
        if names:
            weights = request.tensors[-len(names) :]
            self._weights[request.fields["module"]] = dict(zip(names, weights, strict=True))
        return self._traced.built.get(question, _UNKNOWN)

    def _replay(self, request: wire.Request, trace: Tensor) -> wire.Reply:
        weights = self._weights.get(request.fields.get("module", -1), {})
        fields: dict[str, Any] = {
            "args": request.fields["args"],
            "inputs_after": True,
            "seed": request.fields.get("seed"),
            "forbidden": self._forbidden,
            "names": list(weights),
        }
        sent = wire.Request(op="replay", fields=fields, tensors=(*request.tensors, *weights.values(), trace))
        reply = self._replaying.ask(sent)
        if reply.status != wire.OK and reply.texts[0] == NotATrace.kind:
            self.not_followed = reply.texts[-1]
        elif reply.status != wire.OK and reply.texts[0] == Forbidden.kind:
            self.forbidden = "::".join(reply.texts[1].split(".")[:2])  # without the overload
        if reply.status != wire.OK or request.fields.get("inputs_after"):
            return reply
        result, *after = reply.tensors
        given = [request.tensors[described["tensor"]] for described in request.fields["args"] if "tensor" in described]
        self.changed = self.changed or what_changed(given, [part.data for part in after if part.data is not None])
        return replace(reply, tensors=(result,))


def _another(tensor: Tensor, drawing: torch.Generator) -> Tensor:
    """Other numbers of the same size, laid out alike: none that a test has drawn, and nobody's to foresee."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return tensor
    reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    held = torch.as_strided(tensor, (reach,), (1,), tensor.storage_offset()).double()
    kept = (held == 0) | ~held.isfinite()
    size = held[~kept].square().mean().sqrt()  # NaN where there are none, and none to draw
    drawn = size * torch.randn(reach, dtype=torch.float64, generator=drawing)
    return torch.where(kept, held, drawn).to(tensor.dtype).as_strided(tensor.shape, tensor.stride())
