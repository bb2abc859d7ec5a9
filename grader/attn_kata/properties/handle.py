"""The handle that hidden tests and the diagnosis have on an attempt, or on the reference: the same for both.

`handle.some_function(q, k, v)` calls a function; `handle.SomeModule(embed_dim, num_heads)` builds a module, which is then
called. `run` instead of a call gives gradients, the inputs as the call left them, what ran, or what it cost.

If the contract asks for a tuple (`[returns]` in kata.toml), a call gives the tuple of its parts. A part is a tensor, or an
`Opaque`: a value of the attempt's own, which stays in its process, and may be an argument of a later call.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from attn_kata.properties.failures import AttemptRaised, MissingName, NoAnswer, PropertyFailed, Raised, Refused
from attn_kata.properties.recording import cost, recording
from attn_kata.properties.results import Opaque, Result, Trace, opaque, received, trace
from attn_kata.protocol import wire
from attn_kata.protocol.messages import AS_GIVEN, OPAQUE, Argument, Build, Call, LoadWeights, Request

_MOST_OF_A_CASE = 1 << 16
_numbers = itertools.count()  # of modules and of seeds, over all handles of this process


def number_for(case: int) -> None:
    """From now on number for this case (32 bits): its questions are the same whatever was asked before it, and no other's."""
    global _numbers
    _numbers = itertools.count(_MOST_OF_A_CASE * (1 + case))


class Transport(Protocol):
    """Whoever answers requests. `generation` changes when what was built before is gone."""

    @property
    def generation(self) -> int: ...

    def ask(self, request: Request) -> wire.Reply: ...

    def block(self, words: tuple[str, ...]) -> None: ...


class Handle:
    """An attempt, or the reference, by the names that the contract gives.

    `handle.softmax` is a Function, `handle.SelfAttention` (a name in CapWords) is a Class. Where the attempt has no such name,
    a call raises MissingName. `returns` has the names of the parts of each entry point whose result is a tuple.
    """

    def __init__(self, transport: Transport, returns: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self._transport = transport
        self._returns = returns or {}
        self._options: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        target = Class if name[0].isupper() else Function
        return target(self._transport, name, self._returns.get(name, ()))._with(self._options)

    def _with(self, options: dict[str, Any]) -> Handle:
        """A copy whose functions and modules run with these options of `Target.run` when they are called."""
        other = copy.copy(self)
        other._options = options
        return other

    def _block(self, words: tuple[str, ...]) -> None:
        """From now on have operations refuse whose names contain one of these words."""
        self._transport.block(words)


SomeTarget = TypeVar("SomeTarget", bound="Target")


class Target:
    """What a function and a built module have in common."""

    def __init__(self, transport: Transport, returns: tuple[str, ...]) -> None:
        self._transport = transport
        self._returns = returns
        self._options: dict[str, Any] = {}

    def _with(self: SomeTarget, options: dict[str, Any]) -> SomeTarget:
        """A copy that runs with these options of `run` when it is called; without options, itself."""
        if options == self._options:
            return self
        other = copy.copy(self)
        other._options = options
        return other

    def _called(self) -> tuple[str | None, int | None]:
        """The function's name, or the module's number."""
        raise NotImplementedError

    def _parameter_names(self) -> tuple[str, ...]:
        return ()

    def _hold(self, weights: dict[str, Tensor]) -> None:
        raise NotImplementedError

    def __call__(self, *args: Any) -> Any:
        result = self.run(*args, **self._options)
        return tuple(result.parts.values()) if self._returns else result.output

    def run(
        self,
        *args: Any,
        cotangent: Tensor | dict[str, Tensor] | None = None,
        labels: Tensor | None = None,
        weights: dict[str, Tensor] | None = None,
        inputs_after: bool = False,
        record: bool = False,
        devices: bool = False,
        measure: bool = False,
        training: bool | None = None,
        seed: int | None = None,
        lenient_views: bool = False,
    ) -> Result:
        """Call with `args` (tensors, numbers, None, strings, torch.device, Opaque), and answer what is asked for.

            result = module.run(x, cotangent=randn(2, 3, 8), training=True)
            result.output, result.input_gradients, result.parameter_gradients

        `cotangent`, of the output's shape, asks for gradients of `(output * cotangent).sum()`; of a result in parts it has
        a tensor by name for each part that is differentiated; `labels`, one for each row of
        the output, for those of the mean cross-entropy; `weights`, made of answers, are loaded first; `training` sets the
        module's mode first; `seed` is that of torch's generator during the call, one of its own unless given; `record` asks
        for what ran, `devices` for what would mix devices, `measure` for what it cost (only one of them); `lenient_views`
        has `view` copy where it would raise.
        Raises AttemptRaised, Refused, PropertyFailed for a result that is no tensor, AttemptDied.
        """
        name, module = self._called()
        tensors, described = describe_arguments(args)
        given = list(tensors)
        names = [part for part in self._returns or ("out",) if not part.startswith(OPAQUE)]
        differentiated: dict[str, Any] = {}
        if cotangent is not None:
            of_parts = cotangent if isinstance(cotangent, dict) else {names[0]: cotangent}
            places = iter(range(len(tensors), len(tensors) + len(of_parts)))
            differentiated["cotangents"] = tuple(next(places) if part in of_parts else None for part in names)
            tensors += [of_parts[part] for part in names if part in of_parts]
        if labels is not None:
            differentiated["labels"] = len(tensors)
            tensors.append(labels)
        if weights is not None:
            self._hold(weights)
            tensors += weights.values()
        request = Call(
            name=name,
            module=module,
            args=described,
            tensors=tuple(tensors),
            weights=tuple(weights or ()),
            training=training,
            seed=next(_numbers) if seed is None else seed,
            inputs_after=inputs_after,
            record=record,
            devices=devices,
            measure=measure,
            returns=self._returns,
            number=next(_numbers) if len(names) < len(self._returns) else None,
            lenient_views=lenient_views,
            of_answers=weights is not None,
            **differentiated,
        )
        reply = ask(self._transport, request)
        answered, texts = list(reply.tensors), list(reply.texts)
        results = [answered.pop(0) for _ in names]
        found = iter(map(received, results))
        parts: dict[str, Tensor | Opaque] = {}
        for place, part in enumerate(part for part in self._returns if part.startswith(OPAQUE)):
            parts[part.removeprefix(OPAQUE)] = opaque(texts.pop(0), answered, request.number or 0, place)
        parts = {
            part.removeprefix(OPAQUE): parts[part.removeprefix(OPAQUE)] if part.startswith(OPAQUE) else next(found)
            for part in self._returns or ("out",)
        }
        output = parts[names[0]]
        assert isinstance(output, Tensor)
        after = [part.data for part in answered[: len(given)] if part.data is not None] if inputs_after else []
        answered = answered[len(given) :] if inputs_after else answered
        floating = sum(tensor.is_floating_point() for tensor in given)
        parameters = sorted(self._parameter_names())
        gradients = [part.data for part in answered]
        if differentiated and len(gradients) != floating + len(parameters):
            raise PropertyFailed("its parameters changed during the call")
        return Result(
            output=output,
            parts=parts,
            shares_input=any(part.shares_input for part in results),
            on_meta=results[0].device == wire.META,
            inputs_after=after,
            input_gradients=gradients[:floating],
            parameter_gradients=dict(zip(parameters, gradients[floating:], strict=True)) if differentiated else {},
            recording=recording(tuple(texts)) if record or devices else None,
            cost=cost(tuple(texts)) if measure else None,
        )

    def trace(self, *args: Any, training: bool | None = None) -> Trace:
        """What each operation of a call gives, in order; if the call raises, those before, and the one that raised.

        Raises Refused, AttemptDied, and AttemptRaised where there is no such function.
        """
        name, module = self._called()
        tensors, described = describe_arguments(args)
        request = Call(
            name=name,
            module=module,
            args=described,
            tensors=tuple(tensors),
            training=training,
            seed=next(_numbers),
            trace=True,
        )
        return trace(ask(self._transport, request))


class Function(Target):
    """A function of the attempt's: call it for its output, or `run` it for more."""

    def __init__(self, transport: Transport, name: str, returns: tuple[str, ...]) -> None:
        super().__init__(transport, returns)
        self._name = name

    def _called(self) -> tuple[str | None, int | None]:
        return self._name, None


class Class:
    """A module class of the attempt's: call it to build one."""

    def __init__(self, transport: Transport, name: str, returns: tuple[str, ...]) -> None:
        self._transport = transport
        self._name, self._returns = name, returns
        self._options: dict[str, Any] = {}

    def _with(self, options: dict[str, Any]) -> Class:
        if options == self._options:
            return self
        other = copy.copy(self)
        other._options = options
        return other

    def __call__(self, *args: Any) -> Module:
        return Module(self._transport, self._name, args, returns=self._returns)._with(self._options)

    def loaded(self, weights: dict[str, Tensor], *args: Any) -> Module:
        """As a call, then `load`, asked for at once. Raises what both raise."""
        return Module(self._transport, self._name, args, weights, self._returns)._with(self._options)


class Module(Target):
    """A built module: call it for its output, or `run` it for more. `parameters` has shapes by name.

    It is in train() until `run` sets another mode. It is built again, with the same weights, when the attempt's process had to
    be replaced.
    """

    def __init__(
        self,
        transport: Transport,
        name: str,
        args: tuple[Any, ...],
        weights: dict[str, Tensor] | None = None,
        returns: tuple[str, ...] = (),
    ) -> None:
        super().__init__(transport, returns)
        self._name, self._args = name, args
        self._weights = weights or {}
        self._build()

    def _build(self) -> None:
        tensors, described = describe_arguments(self._args)
        self._number = next(_numbers)
        request = Build(
            name=self._name,
            module=self._number,
            seed=self._number,
            args=described,
            weights=tuple(self._weights),
            tensors=(*tensors, *self._weights.values()),
        )
        reply = ask(self._transport, request)
        self._generation = self._transport.generation
        if reply.texts == (AS_GIVEN,) and not reply.tensors:
            # Sorted, as in every other answer: the gradients come in this order.
            self.parameters = {name: tuple(weight.shape) for name, weight in sorted(self._weights.items())}
            return
        self.parameters = {
            name: part.shape for name, part in zip(reply.texts, reply.tensors, strict=True)
        }  # name: shape
        if self._weights:
            self._check(self._weights)

    def _check(self, weights: dict[str, Tensor]) -> None:
        wanted = {name: tuple(weight.shape) for name, weight in weights.items()}
        if wanted != self.parameters:
            raise PropertyFailed(_other_parameters(wanted, self.parameters))

    def _called(self) -> tuple[str | None, int | None]:
        return None, self._current()

    def _current(self) -> int:
        """Its number in the attempt's process, where it is built again if that is a new one."""
        if self._generation != self._transport.generation:
            self._build()
        return self._number

    def _parameter_names(self) -> tuple[str, ...]:
        return tuple(self.parameters)

    def _hold(self, weights: dict[str, Tensor]) -> None:
        self._check(weights)
        self._weights = weights

    def load(self, weights: dict[str, Tensor]) -> None:
        """Copy weights in by name, in their dtype. Raises PropertyFailed where the module's names or shapes are others."""
        self._hold(weights)
        ask(
            self._transport,
            LoadWeights(module=self._current(), weights=tuple(weights), tensors=tuple(weights.values())),
        )


def ask(transport: Transport, request: Build | LoadWeights | Call) -> wire.Reply:
    """Ask, and turn an answer that is none into the failure that a report can show."""
    reply = transport.ask(request)
    if reply.status == wire.RAISED:
        raise AttemptRaised(read_raised(reply.texts))
    if reply.status == wire.REFUSED:
        operation, line = (*reply.texts, "")[:2]
        raise Refused(operation, int(line) if line.isdecimal() and len(line) < 9 and line != "0" else None)
    if reply.status == wire.BAD_RESULT:
        raise NoAnswer(reply.texts[0] if reply.texts else "returned something that is no tensor")
    if reply.status == wire.NO_ENTRY:
        raise MissingName(getattr(request, "name", None) or "", reply.texts[1:])
    if isinstance(request, Call) and not reply.tensors:
        raise NoAnswer("answered without a tensor")
    return reply


def read_raised(texts: tuple[str, ...]) -> Raised:
    """An exception as the attempt's process tells it."""
    bases, message, *frames = (*texts, "", "")[: max(2, len(texts))]
    read = []
    for frame in frames:
        line, _, function = frame.partition(" ")
        if line.isdecimal() and len(line) < 9:
            read.append((int(line), function))
    return Raised(types=tuple(bases.split(",")), text=message, frames=tuple(read))


def describe_arguments(args: tuple[Any, ...]) -> tuple[list[Tensor], tuple[Argument, ...]]:
    """The tensors among `args`, and every argument as a request describes it."""
    tensors: list[Tensor] = []
    described: list[Argument] = []
    for value in args:
        if isinstance(value, Tensor):
            described.append(("tensor", len(tensors)))
            tensors.append(value)
        elif isinstance(value, torch.device):
            described.append(("device", str(value)))
        elif isinstance(value, Opaque):
            described.append(("opaque", (value.number, value.place, value.operations)))
        else:
            described.append(("value", value))
    return tensors, tuple(described)


def random_weights(parameters: dict[str, tuple[int, ...]], dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Random weights by name, for parameters of these shapes: matrices with deviation 1.2 / sqrt(in), vectors with 0.5.

    So scores are large enough that no mistake hides, and small enough that no softmax saturates.
    """
    weights = {}
    for name, shape in parameters.items():
        scale = 1.2 / shape[-1] ** 0.5 if len(shape) > 1 else 0.5
        weights[name] = torch.randn(shape, dtype=torch.float64).mul_(scale).to(dtype)
    return weights


def build_pair(
    attempt: Handle, reference: Handle, name: str, *args: Any, dtype: torch.dtype = torch.float64
) -> tuple[Module, Module]:
    """The attempt's module and the reference's, built with the same arguments and the same random weights.

    The weights are rounded to `dtype`; the attempt gets them in `dtype`, the reference in float64.
    Raises PropertyFailed where the attempt's parameters have other names or shapes.
    """
    theirs: Module = getattr(reference, name)(*args)
    weights = random_weights(theirs.parameters, dtype)
    ours: Module = getattr(attempt, name).loaded(weights, *args)
    theirs.load({name: weight.double() for name, weight in weights.items()})
    return ours, theirs


def _other_parameters(wanted: dict[str, tuple[int, ...]], found: dict[str, tuple[int, ...]]) -> str:
    missing = [name for name in wanted if name not in found]
    extra = [name for name in found if name not in wanted]
    if missing or extra:
        has = ", ".join(found) if found else "none"
        return f"its parameters are {has}; the contract names {', '.join(wanted)}"
    name = next(name for name in wanted if wanted[name] != found[name])
    return f"{name} has shape {found[name]}; the contract's has {wanted[name]}"
