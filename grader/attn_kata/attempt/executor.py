"""Runs requests against an attempt's code.

In the attempt process this is the candidate's code. In the grading and in tests, the same executor runs the reference and the
mutants, so both sides of a comparison are computed in the same way.
"""

from __future__ import annotations

import contextlib
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attn_kata.attempt import blocked, definitions, exceptions
from attn_kata.attempt.devices import Devices, tensors_in
from attn_kata.attempt.meter import Meter
from attn_kata.attempt.modules import copy_weights, named_parameters, parameters
from attn_kata.attempt.opaque import OpaqueParts, form, tensors_of
from attn_kata.attempt.recorder import Recorder
from attn_kata.attempt.results import (
    BadResult,
    checked_parts,
    cross_entropy_gradient,
    describe_type,
    gradients,
    with_sharing,
)
from attn_kata.attempt.tracer import Tracer
from attn_kata.protocol import wire
from attn_kata.protocol.messages import AS_GIVEN, Adapt, Block, Build, Call, Load, LoadWeights, Request

# Read before any attempt runs: later changes that an attempt makes to torch do not affect it.
_manual_seed = (
    torch.default_generator.manual_seed
)  # torch.manual_seed formats three stack traces for devices that nobody uses

_READS_A_TYPE = re.compile(rb"\.type\b(?!\s*\()")  # as in x.device.type

# As in torch.FloatTensor([1.0]): no function mode sees it.
_LEGACY_CONSTRUCTOR = re.compile(rb"\b(?:Float|Double|Half|BFloat16|Long|Int|Short|Char|Byte|Bool)?Tensor\s*\(")

_ADAPTER = "adapter"  # the module that the adapter of code by other names is
_HOLDERS = frozenset((Tensor, list, tuple, dict))  # what may be or hold a plain tensor
_MOVE_ALONG = frozenset(("_parameters", "_buffers", "_modules"))  # the attributes of a module that move with it

MODULE_NAME = "attempt"

Tensors = tuple[tuple[Tensor, int], ...]
Content = tuple[tuple[str, ...], Tensors]
Answer = tuple[int, tuple[str, ...], Tensors]


class MissingEntry(Exception):
    """The attempt has no function or class of that name."""


@dataclass(frozen=True, kw_only=True)
class _Built:
    """A module that was built, and the parameter names of the contract."""

    module: nn.Module
    contract: tuple[str, ...]

    def parameters(self) -> list[tuple[str, nn.Parameter]]:
        """The module's parameters with their names, each once."""
        return named_parameters(self.module, self.contract)


class Executor:
    """One attempt's code and the modules built from it."""

    def __init__(self, namespace: types.ModuleType | None = None, filename: str = "attempt.py") -> None:
        self._namespace = namespace or types.ModuleType(MODULE_NAME)
        self._filename = filename
        self._adapter: dict[str, Any] = {}  # what the adapter defines
        self._modules: dict[int, _Built] = {}
        self._opaque = OpaqueParts()
        self._reads_device_type = False
        self._calls_legacy_constructors = False
        self._made_on_default: list[Tensor] = []  # while the attempt was loaded, and while modules were built
        self._operations: dict[type[Request], Callable[[Any], Content]] = {
            Load: self._load,
            Adapt: self._adapt,
            Block: self._block,
            Build: self._build,
            LoadWeights: self._load_weights,
            Call: self._call,
        }

    def execute(self, request: Request) -> Answer:
        """The answer to one request. An exception of the attempt is an answer too, whatever its type."""
        try:
            answer = self._execute(request)
        except BaseException as error:
            answer = wire.RAISED, (exceptions.type_name(type(error)), "(what it raised could not be read)"), ()
        for operation, line in blocked.take_refusals():  # even if the attempt has caught the refusal
            return wire.REFUSED, (operation, str(line)), ()
        return answer

    def _execute(self, request: Request) -> Answer:
        try:
            return wire.OK, *self._operations[type(request)](request)
        except _NotPython as fault:
            return wire.SYNTAX, fault.texts, ()
        except MissingEntry as missing:
            return wire.NO_ENTRY, (str(missing), *self._names()), ()
        except BadResult as bad:
            return wire.BAD_RESULT, (str(bad),), ()
        except BaseException as error:
            no_memory = exceptions.is_out_of_memory(error)
            return wire.NO_MEMORY if no_memory else wire.RAISED, exceptions.exception_texts(error, self._filename), ()

    # ------------------------------------------------------------------------------------------------- requests

    def _load(self, request: Load) -> Content:
        """Run the attempt's source as a module. Its name is not `__main__`.

        An exception after the definitions, as of a demo, does not undo them: then the answer describes the exception.
        """
        source = wire.storage_bytes(request.tensors[0])  # (bytes,) uint8
        self._filename = request.filename
        self._reads_device_type = _READS_A_TYPE.search(source) is not None
        self._calls_legacy_constructors = _LEGACY_CONSTRUCTOR.search(source) is not None
        undecodable = exceptions.not_decodable(source)
        if undecodable:
            raise _NotPython((undecodable, "0", ""))
        try:
            code = compile(source, self._filename, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:  # ValueError: a NUL byte
            raise _NotPython(exceptions.syntax_error(error)) from None
        exceptions.remember_lines(source, self._filename)
        self._namespace.__file__ = self._filename
        sys.modules[self._namespace.__name__] = self._namespace
        stopped: Exception | None = None
        try:
            if request.definitions:
                definitions.run(source, self._filename, self._namespace.__dict__)
            else:
                exec(code, self._namespace.__dict__)
        except Exception as error:
            stopped = error
        self._made_on_default += _kept_tensors(self._namespace.__dict__.values())
        missing = [name for name in request.wanted if not callable(self._namespace.__dict__.get(name))]
        if stopped is not None and (missing or exceptions.is_out_of_memory(stopped)):
            raise stopped
        if missing:
            raise MissingEntry(" ".join(missing))
        return () if stopped is None else exceptions.exception_texts(stopped, self._filename), ()

    def _adapt(self, request: Adapt) -> Content:
        """Run the adapter, which may use and shadow every name of the attempt."""
        adapter = dict(self._namespace.__dict__) | {"__name__": _ADAPTER}
        if not self._adapter:  # once: a new filter would let each warning of the attempt be printed anew
            warnings.filterwarnings("ignore", module=f"^{_ADAPTER}$")  # they say nothing of the attempt's own lines
        exec(compile(wire.storage_bytes(request.tensors[0]), "<adapter>", "exec", dont_inherit=True), adapter)
        self._adapter = adapter
        return (), ()

    def _block(self, request: Block) -> Content:
        """Block the forbidden operations."""
        blocked.block(request.words, self._filename)
        return (), ()

    def _build(self, request: Build) -> Content:
        """Build a module. Returns the names and shapes of its parameters, or AS_GIVEN where they are those of the weights."""
        _seed(request.seed)
        module = self._entry(request.name)(*self._arguments(request))
        if not isinstance(module, nn.Module):
            raise BadResult(f"{request.name}(…) is {describe_type(module)}, not an nn.Module")
        built = _Built(module=module, contract=request.weights)
        self._modules[request.module] = built
        for part in module.modules():  # a plain attribute does not move with its module, whatever made it
            self._made_on_default += _kept_tensors(
                value for name, value in vars(part).items() if type(value) in _HOLDERS and name not in _MOVE_ALONG
            )
        if request.weights:
            weights = _weights(request)
            found = {name: value.shape for name, value in built.parameters()}
            if found == {name: weight.shape for name, weight in weights.items()}:
                copy_weights(module, weights)
                return (AS_GIVEN,), ()
        return parameters(built.parameters())

    def _load_weights(self, request: LoadWeights) -> Content:
        """Convert a module to the dtype of the weights, and copy them in by name."""
        copy_weights(self._modules[request.module].module, _weights(request))
        return (), ()

    def _call(self, request: Call) -> Content:
        """Call a function or a module. Returns the result, then what else `Call` asks for, in its order."""
        target, built = self._target(request)
        arguments = self._arguments(request)
        given = [value for value in arguments if isinstance(value, Tensor)]
        _seed(request.seed)
        cotangents = [None if place is None else request.tensors[place] for place in request.cotangents]
        labels = None if request.labels is None else request.tensors[request.labels]
        differentiated = bool(cotangents) or labels is not None
        leaves = [value for value in given if value.is_floating_point()] if differentiated else []
        for leaf in leaves:
            leaf.requires_grad_()

        if request.trace:
            return self._trace(target, arguments)
        texts: tuple[str, ...] = ()
        lenient = _lenient_views() if request.lenient_views else contextlib.nullcontext()
        with lenient, blocked.autograd_off_if_blocked():
            moves_along: list[Tensor] = []
            if built is not None and (request.devices or request.measure):
                moves_along = [*built.module.parameters(), *built.module.buffers()]
            if request.record:
                with Recorder() as recorder:
                    output = target(*arguments)
                texts = recorder.told()
            elif request.devices:
                devices = Devices(
                    reads_device_type=self._reads_device_type,
                    made_before=self._made_on_default,
                    inputs=[*tensors_in(arguments), *moves_along],
                )
                if self._calls_legacy_constructors:
                    devices.look_for_legacy_constructors()
                with devices:
                    output = target(*arguments)
                texts = devices.told(tensors_in(output))
            elif request.measure:
                weights_of = [] if built is None else list(built.module.parameters())
                with torch.no_grad(), Meter([*tensors_in(arguments), *moves_along], weights_of) as meter:
                    output = target(*arguments)
                texts = meter.texts()
            else:
                output = target(*arguments)
        results, opaque = checked_parts(output, request.returns)
        if request.number is not None:
            self._opaque.keep(request.number, opaque)
        for result in results:
            if result.device.type != "cpu" and not any(isinstance(value, torch.device) for value in arguments):
                raise BadResult(f"returned a tensor on the device {result.device}; its inputs are on the CPU")
        parts = [with_sharing(result, given) for result in results]
        parts += [(tensor, wire.ABSENT) for value in opaque for tensor in tensors_of(value)]
        if request.inputs_after:
            parts += [(value.detach(), 0) for value in given]
        if labels is not None:
            cotangents = [cross_entropy_gradient(results[0], labels)]
        if cotangents:
            weights: list[Tensor] = [] if built is None else [value for _, value in built.parameters()]
            parts += gradients(results, leaves + weights, cotangents)
        return (*map(form, opaque), *texts), tuple(parts)

    def _trace(self, target: Callable[..., Any], arguments: list[Any]) -> Content:
        """What the operations of a call gave, as `Tracer.told` describes it; what it raises itself ends it."""
        with contextlib.suppress(Exception), blocked.autograd_off_if_blocked(), Tracer(self._filename) as tracer:
            target(*arguments)
        texts, numbers = tracer.told()
        return texts, ((numbers, 0),)

    # ---------------------------------------------------------------------------------------------------- look-up

    def _target(self, request: Call) -> tuple[Any, _Built | None]:
        """The function or module to call. A module is put into the mode of the request and gets its weights."""
        if request.module is None:
            return self._entry(request.name or ""), None
        built = self._modules[request.module]
        if request.weights:
            copy_weights(built.module, _weights(request))
        if request.training is not None:
            built.module.train(request.training)
        return built.module, built

    def _arguments(self, request: Build | Call) -> list[Any]:
        """The arguments that a request describes. Raises BadResult for an opaque part that is not what it must be."""
        makers: dict[str, Callable[[Any], Any]] = {
            "tensor": lambda place: request.tensors[place],
            "device": torch.device,
            "value": lambda value: value,
            "opaque": self._opaque.recall,
        }
        return [makers[what](value) for what, value in request.args]

    def _entry(self, name: str) -> Any:
        found = self._adapter.get(name, self._namespace.__dict__.get(name))
        if not callable(found):
            raise MissingEntry(name)
        return found

    def _names(self) -> tuple[str, ...]:
        """The names of the functions and classes that the attempt defines, for "did you mean"."""
        own = self._namespace.__name__
        return tuple(
            name
            for name, value in list(self._namespace.__dict__.items())
            if callable(value) and getattr(value, "__module__", None) == own and not name.startswith("__")
        )[:50]


class _NotPython(Exception):
    """The source is not Python. `texts` say why."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        super().__init__(texts)
        self.texts = texts


@contextlib.contextmanager
def _lenient_views() -> Iterator[None]:
    """Let `Tensor.view` work like `reshape`, so that mistakes after a wrong view can be diagnosed too."""
    view = Tensor.view
    Tensor.view = lambda self, *shape: view(self, *shape) if _is_dtype(shape) else self.reshape(*shape)  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tensor.view = view  # type: ignore[method-assign]


def _is_dtype(shape: tuple[Any, ...]) -> bool:
    return len(shape) == 1 and isinstance(shape[0], torch.dtype)


def _seed(seed: int | None) -> None:
    """Seed torch's generator, so that random numbers do not depend on earlier requests."""
    if seed is not None:
        _manual_seed(seed)


def _weights(request: Build | LoadWeights | Call) -> dict[str, Tensor]:
    """The weights of a request by name: its last tensors."""
    return dict(zip(request.weights, request.tensors[-len(request.weights) :], strict=True))


def _kept_tensors(values: Iterable[Any]) -> list[Tensor]:
    """The plain tensors among values, and one level down in their lists, tuples and dictionaries."""
    found = []
    for value in values:
        if type(value) not in _HOLDERS:
            continue
        if type(value) is dict:
            value = list(value.values())
        found += [part for part in (value if type(value) in (list, tuple) else [value]) if type(part) is Tensor]
    return found
