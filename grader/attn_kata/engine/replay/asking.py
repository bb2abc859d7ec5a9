"""The hidden tests' two ways to ask for traces and for what comes of them: first of the attempt, then where it is not.

The tests are run twice, with the same seeds. The first time the reference answers them, and what they ask is noted and asked of
the attempt as well, as far as a trace can tell it; what it shows decides the second time.
"""

from __future__ import annotations

import functools
import json
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from ...properties.checks import what_changed
from ...properties.handle import Transport
from ...properties.local import same_strides
from ...properties.runner import Case
from ...properties.secret import fill
from .. import wire
from . import decoys
from .running import Forbidden, NotATrace

MOST_BYTES = 64 << 20  # of all traces together: they are kept until they are carried out
_NOT_TRACED = ("record", "mixing", "labels")  # a trace tells nothing of the first two; the last are many long calls


class Process(Transport, Protocol):
    """Whoever answers requests in a process of its own, where one need not wait for it."""

    def post(self, request: wire.Request) -> None:
        """Ask now what `ask` is called for later, in the same order. Raises AttemptDied."""

    def ask_ahead(self, questions: Sequence[bytes]) -> None:
        """Ask what is most likely asked next."""


@dataclass(frozen=True, kw_only=True)
class _Module:
    """A module as it is when it is called: how it was built, its weights, its mode."""

    built: wire.Request
    weights: dict[str, Tensor]
    training: bool | None = None

    @functools.cached_property
    def kind(self) -> str:
        """What it has in common with modules that differ by the numbers of their weights alone."""
        held = [[name, str(weight.dtype)] for name, weight in self.weights.items()]
        return json.dumps([_how_built(self.built), held, self.training is None])


@dataclass(kw_only=True)
class _Call:
    """A call as the tests asked for it."""

    request: wire.Request
    module: _Module | None

    @functools.cached_property
    def alike(self) -> str:
        """What it has in common with calls that differ by what their tensors hold alone, and by where they are asked."""
        left_out = ("module", "seed", "inputs_after")
        told = {name: value for name, value in self.request.fields.items() if name not in left_out}
        if self.module is not None:
            told |= {"module": self.module.kind, "training": self.module.training}
        layouts = [[str(tensor.dtype), tensor.shape, tensor.stride()] for tensor in self.request.tensors]
        return json.dumps([told, layouts])


class _Modules:
    """The modules that the tests have built, by the numbers that they go by."""

    def __init__(self) -> None:
        self._modules: dict[int, _Module] = {}

    def follow(self, request: wire.Request) -> _Module | None:
        """The module that a request is for, as the request leaves it."""
        fields = request.fields
        if "module" not in fields:
            return None
        names = fields.get("names") or []
        weights = dict(zip(names, request.tensors[len(request.tensors) - len(names) :], strict=True))
        if request.op == "build":
            known = _Module(built=request, weights=weights)
        else:
            before = self._modules[fields["module"]]
            mode = fields.get("training")
            known = replace(
                before, weights=weights or before.weights, training=before.training if mode is None else mode
            )
        self._modules[fields["module"]] = known
        return known


class Traced:
    """Answers the tests as the reference does, and has the attempt show traces of what they ask for.

    Calls that differ by nothing but what their tensors hold share one trace, so that nobody is asked often, and nothing can be
    done for some numbers or masks alone. The numbers that are sent say nothing about those that the tests ask about: only which
    of them are 0 or not finite, and whatever is no floating number, is the same. Seeds and the numbers of modules are others,
    as the tests' own tell what their numbers were drawn from. `near` is for attempts whose steps depend on
    what tensors hold (they compare two numbers and go on accordingly), or on what they draw outside of torch: each call has a
    trace of its own, for numbers that lie near the test's.

    `untold` are the properties that ask for what is not traced.
    """

    generation = 0

    def __init__(self, attempt: Process, reference: Transport, *, near: bool = False) -> None:
        self._attempt, self._reference, self._near = attempt, reference, near
        self._drawing = torch.Generator()
        fill(self._drawing, secrets.token_bytes(32), "decoys")
        self._modules = _Modules()
        self._case: Case | None = None
        self._pending: deque[tuple[wire.Request, Callable[[wire.Reply], None] | None]] = deque()
        self._numbers: dict[int, int] = {}  # of modules, as the attempt is told them
        self._there: dict[str, _Module] = {}  # by kind, one that was built in the attempt's process
        self._bytes = 0
        self._builds: dict[str, wire.Reply | None] = {}  # by how a module is built
        self._traces: dict[str | bytes, wire.Reply | None] = {}  # by what calls have in common; near, also by their questions
        self._calls: dict[Case | None, list[_Call]] = {}  # of each case
        self.untold: set[str] = set()
        self.not_followed: str | None = None

    def begin(self, case: Case | None) -> None:
        """A case of a property begins."""
        self._case = case

    def ask(self, request: wire.Request) -> wire.Reply:
        """The reply of the reference. Raises AttemptDied."""
        if request.op == "call" and any(request.fields.get(name) not in (None, False) for name in _NOT_TRACED):
            self.untold.add("" if self._case is None else self._case[1])
            return _bad("this is not traced")
        request = replace(request, tensors=tuple(map(same_strides, request.tensors)))  # a test may write into them
        module = self._modules.follow(request)
        if request.op == "build":
            how = _how_built(request)
            if how not in self._builds:
                self._builds[how] = None
                self._have_built(module, lambda reply: self._builds.update({how: reply}))
        elif request.op == "call":
            call = _Call(request=request, module=module)
            self._calls.setdefault(self._case, []).append(call)
            if self._near or call.alike not in self._traces:
                self._traces[call.alike] = None
                self._post_trace(call)
        return self._reference.ask(request)

    def collect(self) -> None:
        """Take what the attempt has to show of what was asked. Raises AttemptDied."""
        while self._pending:
            request, keep = self._pending.popleft()
            reply = self._attempt.ask(request)
            if keep is not None:
                keep(reply)

    def built(self, request: wire.Request) -> wire.Reply | None:
        """What building a module came to."""
        return self._builds.get(_how_built(request))

    def calls_after(self, case: Case | None) -> list[_Call]:
        """Those of a case and of the next."""
        cases = list(self._calls)
        place = cases.index(case) if case in self._calls else len(cases)
        return [call for each in cases[place : place + 2] for call in self._calls[each]]

    def trace_of(self, call: _Call) -> wire.Reply | None:
        """The trace of a call, or what was raised instead."""
        alone = self._traces.get(wire.encode_question(call.request)) if self._near else None
        return alone or self._traces.get(call.alike)

    def _post_trace(self, call: _Call) -> None:
        # What is looked at afterwards is nothing to be told: an attempt could do otherwise there.
        fields = {**call.request.fields, "inputs_after": False, "weights": []}
        if call.module is not None:
            there = self._there.get(call.module.kind)
            if there is None or (self._near and there.weights is not call.module.weights):
                there = call.module
                self._have_built(there)
            fields |= {"weights": list(there.weights), "training": call.module.training}
            fields["module"] = there.built.fields["module"]
        self._post(replace(call.request, op="trace", fields=fields), lambda reply: self._keep(call, reply))

    def _have_built(self, module: _Module | None, keep: Callable[[wire.Reply], None] | None = None) -> None:
        assert module is not None
        self._there[module.kind] = module
        names = list(module.weights)
        given = module.built.tensors[: len(module.built.tensors) - len(module.built.fields["names"])]
        built = replace(
            module.built,
            fields={**module.built.fields, "names": names},
            tensors=(*given, *module.weights.values()),
        )
        self._post(built, keep)

    def _post(self, request: wire.Request, keep: Callable[[wire.Reply], None] | None) -> None:
        fields = {**request.fields, "seed": secrets.randbits(31)}
        if "module" in fields:
            fields["module"] = self._numbers.setdefault(fields["module"], len(self._numbers))
        tensors = tuple(decoys.another(tensor, self._drawing, self._near) for tensor in request.tensors)
        others = replace(request, fields=fields, tensors=tensors)
        self._attempt.post(others)
        self._pending.append((others, keep))

    def _keep(self, call: _Call, reply: wire.Reply) -> None:
        """Keep a trace, or what was raised."""
        data = reply.tensors[0].data if reply.tensors else None
        self._bytes += 0 if data is None else len(data)
        if self._bytes > MOST_BYTES:
            self.not_followed = f"its traces are more than {MOST_BYTES >> 20} MiB together"
        else:
            self._traces[call.alike] = reply
            if self._near:
                self._traces[wire.encode_question(call.request)] = reply


class Replayed:
    """Has the traces carried out for what the tests ask about, by a process that the attempt never ran in.

    `forbidden` is a forbidden operation that is in one of them, `not_followed` why one could not be carried out, `changed` what
    one did to an input where the tests do not ask for that: an attempt can tell the calls in which they do by counting.
    """

    generation = 0

    def __init__(self, replaying: Process, traced: Traced, forbidden: list[str]) -> None:
        self._replaying, self._traced, self._forbidden = replaying, traced, forbidden
        self._modules = _Modules()
        self.forbidden: str | None = None
        self.not_followed: str | None = None
        self.changed: str | None = None

    def begin(self, case: Case | None) -> None:
        """A case begins: have carried out meanwhile what it most likely asks for."""
        traces = [(call, self._traced.trace_of(call)) for call in self._traced.calls_after(case)]
        ahead = [self._replay(call, trace) for call, trace in traces if trace is not None and trace.status == wire.OK]
        self._replaying.ask_ahead(list(map(wire.encode_question, ahead)))

    def ask(self, request: wire.Request) -> wire.Reply:
        """The reply to what the attempt was asked for before. Raises AttemptDied, of the other process."""
        module = self._modules.follow(request)
        if request.op == "build":
            return self._traced.built(request) or _bad("the attempt was not asked this")
        if request.op != "call":
            return wire.Reply(status=wire.OK, texts=(), tensors=())
        call = _Call(request=request, module=module)
        trace = self._traced.trace_of(call)
        if trace is None or trace.status != wire.OK:
            return trace or _bad("the attempt was not asked this")
        reply = self._replaying.ask(self._replay(call, trace))
        return self._seen(request, reply) if reply.status == wire.OK else self._not_carried_out(reply)

    def _replay(self, call: _Call, trace: wire.Reply) -> wire.Request:
        weights = {} if call.module is None else call.module.weights
        fields = {**call.request.fields, "inputs_after": True, "forbidden": self._forbidden, "names": list(weights)}
        data = trace.tensors[0].data
        assert data is not None
        return wire.Request(op="replay", fields=fields, tensors=(*call.request.tensors, *weights.values(), data))

    def _not_carried_out(self, reply: wire.Reply) -> wire.Reply:
        """Whatever was raised there: it is not the attempt that raised it."""
        kind, why = reply.texts[0], reply.texts[-1]
        if kind == Forbidden.kind:
            self.forbidden = "::".join(why.split(".")[:2])  # without the overload
        else:
            self.not_followed = why
        return _bad(why)

    def _seen(self, request: wire.Request, reply: wire.Reply) -> wire.Reply:
        """The reply, with what became of the inputs where that is asked for."""
        if request.fields.get("inputs_after"):
            return reply
        given = [request.tensors[described["tensor"]] for described in request.fields["args"] if "tensor" in described]
        result, after, rest = reply.tensors[0], reply.tensors[1 : 1 + len(given)], reply.tensors[1 + len(given) :]
        self.changed = self.changed or what_changed(given, [part.data for part in after if part.data is not None])
        return replace(reply, tensors=(result, *rest))


def _bad(why: str) -> wire.Reply:
    return wire.Reply(status=wire.BAD_RESULT, texts=(NotATrace.kind, why), tensors=())


def _how_built(request: wire.Request) -> str:
    return str([request.fields["name"], request.fields["args"]])
