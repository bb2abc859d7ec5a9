"""The handle that hidden tests and the diagnosis have on an attempt, or on the reference: the same for both.

`handle.some_function(q, k, v)` calls a function; `handle.SomeModule(embed_dim, num_heads)` builds a module, which is then
called. `run` instead of a call gives gradients, the inputs as the call left them, or what ran.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from attn_kata.properties.failures import AttemptRaised, MissingName, NoAnswer, PropertyFailed, Raised, Refused
from attn_kata.properties.recording import Recording, recording
from attn_kata.protocol import wire
from attn_kata.protocol.messages import Argument, Build, Call, LoadWeights, Request

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


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of one call. What was not asked for is empty.

    output: the tensor that was returned.
    shares_input: whether it shares memory with an argument.
    on_meta: whether it is on the meta device, and so has a shape and no numbers.
    inputs_after: the tensor arguments as the call left them.
    input_gradients: of the floating arguments, in order; None where no gradient arrives.
    parameter_gradients: by name; None where no gradient arrives.
    recording: which operations ran.
    """

    output: Tensor
    shares_input: bool
    on_meta: bool = False
    inputs_after: list[Tensor] = field(default_factory=list)
    input_gradients: list[Tensor | None] = field(default_factory=list)
    parameter_gradients: dict[str, Tensor | None] = field(default_factory=dict)
    recording: Recording | None = None


class Handle:
    """An attempt, or the reference, by the names that the contract gives.

    `handle.softmax` is a Function, `handle.SelfAttention` (a name in CapWords) is a Class. Where the attempt has no such name,
    a call raises MissingName.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return Class(self._transport, name) if name[0].isupper() else Function(self._transport, name)

    def _block(self, words: tuple[str, ...]) -> None:
        """From now on have operations refuse whose names contain one of these words."""
        self._transport.block(words)


class Target:
    """What a function and a built module have in common."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _called(self) -> tuple[str | None, int | None]:
        """The function's name, or the module's number."""
        raise NotImplementedError

    def _parameter_names(self) -> tuple[str, ...]:
        return ()

    def _hold(self, weights: dict[str, Tensor]) -> None:
        raise NotImplementedError

    def __call__(self, *args: Any) -> Tensor:
        return self.run(*args).output

    def run(
        self,
        *args: Any,
        cotangent: Tensor | None = None,
        labels: Tensor | None = None,
        weights: dict[str, Tensor] | None = None,
        inputs_after: bool = False,
        record: bool = False,
        training: bool | None = None,
        seed: int | None = None,
        lenient_views: bool = False,
    ) -> Result:
        """Call with `args` (tensors, numbers, None, strings, torch.device), and answer what is asked for.

            result = module.run(x, cotangent=randn(2, 3, 8), training=True)
            result.output, result.input_gradients, result.parameter_gradients

        `cotangent`, of the output's shape, asks for gradients of `(output * cotangent).sum()`; `labels`, one for each row of
        the output, for those of the mean cross-entropy; `weights`, made of answers, are loaded first; `training` sets the
        module's mode first; `seed` is that of torch's generator during the call, one of its own unless given; `record` asks
        for what ran; `lenient_views` has `view` copy where it would raise.
        Raises AttemptRaised, Refused, PropertyFailed for a result that is no tensor, AttemptDied.
        """
        name, module = self._called()
        tensors, described = describe_arguments(args)
        given = list(tensors)
        differentiated: dict[str, int] = {}
        for what, value in (("cotangent", cotangent), ("labels", labels)):
            if value is not None:
                differentiated[what] = len(tensors)
                tensors.append(value)
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
            lenient_views=lenient_views,
            of_answers=weights is not None,
            **differentiated,
        )
        reply = ask(self._transport, request)
        answered = list(reply.tensors)
        result = answered.pop(0)
        output = torch.empty(result.shape, dtype=result.dtype, device="meta") if result.data is None else result.data
        after = [part.data for part in answered[: len(given)] if part.data is not None] if inputs_after else []
        answered = answered[len(given) :] if inputs_after else answered
        floating = sum(tensor.is_floating_point() for tensor in given)
        names = sorted(self._parameter_names())
        gradients = [part.data for part in answered]
        if differentiated and len(gradients) != floating + len(names):
            raise PropertyFailed("its parameters changed during the call")
        return Result(
            output=output,
            shares_input=result.shares_input,
            on_meta=result.device == wire.META,
            inputs_after=after,
            input_gradients=gradients[:floating],
            parameter_gradients=dict(zip(names, gradients[floating:], strict=True)) if differentiated else {},
            recording=recording(reply.texts) if record else None,
        )


class Function(Target):
    """A function of the attempt's: call it for its output, a tensor, or `run` it for more."""

    def __init__(self, transport: Transport, name: str) -> None:
        super().__init__(transport)
        self._name = name

    def _called(self) -> tuple[str | None, int | None]:
        return self._name, None


class Class:
    """A module class of the attempt's: call it to build one."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self._name = name

    def __call__(self, *args: Any) -> Module:
        return Module(self._transport, self._name, args)

    def loaded(self, weights: dict[str, Tensor], *args: Any) -> Module:
        """As a call, then `load`, asked for at once. Raises what both raise."""
        return Module(self._transport, self._name, args, weights)


class Module(Target):
    """A built module: call it for its output, a tensor, or `run` it for more. `parameters` has shapes by name.

    It is in train() until `run` sets another mode. It is built again, with the same weights, when the attempt's process had to
    be replaced.
    """

    def __init__(
        self, transport: Transport, name: str, args: tuple[Any, ...], weights: dict[str, Tensor] | None = None
    ) -> None:
        super().__init__(transport)
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
        weights[name] = (scale * torch.randn(shape, dtype=torch.float64)).to(dtype)
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
