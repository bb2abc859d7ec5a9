"""Runs the requests of a grading against an attempt's code, in whichever process it is made.

In the attempt child the code is the candidate's. In the grader child and in tests the same executor runs the reference and
the mutants, so both sides of a comparison are made the same way.
"""

from __future__ import annotations

import contextlib
import re
import sys
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from . import raised, wire, withheld
from .evasion import Evasion, count_threads
from .mixing import Mixing
from .modules import copy_in, named_parameters, parameters
from .recorder import Recorder
from .replay import running, tracing
from .results import BadResult, gradients, kind, of_cross_entropy, one_tensor, with_sharing

# Taken before any attempt runs: what an attempt does to torch later does not reach it.
_manual_seed = torch.default_generator.manual_seed  # torch.manual_seed formats three stacks for devices that nobody uses

_READS_A_TYPE = re.compile(rb"\.type\b(?!\s*\()")  # as in x.device.type

MODULE_NAME = "attempt"

Tensors = tuple[tuple[Tensor, int], ...]
Answer = tuple[int, tuple[str, ...], Tensors]


class MissingEntry(Exception):
    """The attempt has no function or class of that name."""


class Executor:
    """One attempt's code and the modules built from it."""

    def __init__(self, namespace: types.ModuleType | None = None, filename: str = "attempt.py") -> None:
        self._namespace = namespace or types.ModuleType(MODULE_NAME)
        self._filename = filename
        self._modules: dict[int, nn.Module] = {}
        self._threads = count_threads()
        self._names_types = False

    def execute(self, request: wire.Request) -> Answer:
        """The answer to one request. An exception of the attempt's is an answer, whatever its type."""
        try:
            return self._execute(request)
        except BaseException as error:
            return wire.RAISED, (raised.type_name(type(error)), "(what it raised could not be read)"), ()

    def _execute(self, request: wire.Request) -> Answer:
        try:
            if request.op == "load":
                return self._load(request)
            texts, tensors = getattr(self, "_" + request.op)(request)
            return wire.OK, texts, tensors
        except MissingEntry as missing:
            return wire.NO_ENTRY, (str(missing), *self._names()), ()
        except BadResult as bad:
            return wire.BAD_RESULT, (str(bad),), ()
        except (running.Forbidden, running.NotATrace) as wrong:
            return wire.BAD_RESULT, (wrong.kind, str(wrong)), ()
        except BaseException as error:
            return wire.NO_MEMORY if raised.is_want_of_memory(error) else wire.RAISED, raised.told(error, self._filename), ()

    # ------------------------------------------------------------------------------------------------- operations

    def _load(self, request: wire.Request) -> Answer:
        """Run the attempt's source, as a module whose name is not `__main__`.

        Fields: filename, the names wanted of it, and with `withhold` words in the names of what is put away first.
        """
        if request.fields.get("withhold"):
            withheld.put_away(request.fields["withhold"])
        source = wire.storage_bytes(request.tensors[0])  # (bytes,) uint8
        self._filename = request.fields["filename"]
        self._names_types = _READS_A_TYPE.search(source) is not None
        try:
            code = compile(source, self._filename, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:  # ValueError: a NUL byte
            return wire.SYNTAX, raised.syntax_error(error), ()
        raised.remember_lines(source, self._filename)
        self._namespace.__file__ = self._filename
        sys.modules[self._namespace.__name__] = self._namespace
        if request.fields.get("withhold"):
            withheld.run(source, code, self._namespace.__dict__)
        else:
            exec(code, self._namespace.__dict__)
        missing = [name for name in request.fields["wanted"] if not callable(self._namespace.__dict__.get(name))]
        if missing:
            raise MissingEntry(" ".join(missing))
        return wire.OK, (), ()

    def _build(self, request: wire.Request) -> tuple[tuple[str, ...], Tensors]:
        """Build a module. Fields: name, args, a seed, and the number that it is called by from then on, module.

        With `names`, the last tensors are weights of these names, and are copied in where the module has such parameters.
        """
        _seed(request)
        built = self._entry(request.fields["name"])(*_arguments(request))
        if not isinstance(built, nn.Module):
            raise BadResult(f"{request.fields['name']}(…) is {kind(built)}, not an nn.Module")
        self._modules[request.fields["module"]] = built
        told = parameters(built)
        names = request.fields.get("names")
        if names:
            weights = dict(zip(names, request.tensors[-len(names) :], strict=True))
            found = {name: value.shape for name, (value, _) in zip(*told, strict=True)}
            if found == {name: weight.shape for name, weight in weights.items()}:
                copy_in(built, weights)
        return told

    def _load_weights(self, request: wire.Request) -> tuple[tuple[str, ...], Tensors]:
        """Copy weights in by name, after converting the module to their dtype. Fields: module, names."""
        copy_in(self._modules[request.fields["module"]], dict(zip(request.fields["names"], request.tensors, strict=True)))
        return (), ()

    def _call(self, request: wire.Request) -> tuple[tuple[str, ...], Tensors]:
        """Call a function (fields: name) or a module (fields: module, training) with args.

        With `cotangent` (the place of a tensor) also the gradients: of each floating tensor among the arguments, then of each
        parameter by name. With `labels` (a place too) those of the mean cross-entropy. With `inputs_after` the arguments' bytes
        as the call left them. With `record` what ran. With `names` the last tensors are weights, copied in first.
        With `seed` torch's generator is seeded first. With `lenient_views`, `Tensor.view` copies where it would raise.
        With `mixing` (over, and in the end answer, a tensor's place) one product is not made here: see there. Until it is
        answered its factors follow the result.
        """
        fields = request.fields
        target, module = self._target(request)
        arguments = _arguments(request)
        given = [value for value in arguments if isinstance(value, Tensor)]
        _seed(request)
        cotangent, labels = _tensor(request, "cotangent"), _tensor(request, "labels")
        differentiated = cotangent is not None or labels is not None
        leaves = [value for value in given if _is_floating(value)] if differentiated else []
        for leaf in leaves:
            leaf.requires_grad_()

        texts: tuple[str, ...] = ()
        factors: tuple[Tensor, ...] = ()
        with _lenient_views() if fields.get("lenient_views") else contextlib.nullcontext():
            if fields.get("record"):
                with Recorder(names_types=self._names_types) as recorder, Evasion(threads=self._threads) as evasion:
                    output = target(*arguments)
                result = one_tensor(output)
                if evasion.found:
                    raise BadResult(f"what ran could not be seen: {evasion.found}")
                texts = recorder.told(result)
            elif fields.get("mixing"):
                place = fields["mixing"]["answer"]
                with Mixing(fields["mixing"]["over"], None if place is None else request.tensors[place]) as mixing:
                    result = one_tensor(target(*arguments))
                if place is None and mixing.factors is not None:
                    factors = mixing.factors
            else:
                result = one_tensor(target(*arguments))
        if result.device.type != "cpu" and not any(isinstance(value, torch.device) for value in arguments):
            raise BadResult(f"returned a tensor on the device {result.device}; its inputs are on the CPU")
        told = [with_sharing(result, given)]
        told += [(factor.detach(), 0) for factor in factors]
        if fields.get("inputs_after"):
            told += [(value.detach(), 0) for value in given]
        if labels is not None:
            cotangent = of_cross_entropy(result, labels)
        if cotangent is not None:
            parameters: list[Tensor] = [] if module is None else [value for _, value in named_parameters(module)]
            told += gradients(result, leaves + parameters, cotangent)
        return texts, tuple(told)

    def _trace(self, request: wire.Request) -> tuple[tuple[str, ...], Tensors]:
        """What a call does, as a trace of its result and, with `cotangent`, of its gradients.

        Fields as for a call, and weights: the names of those that it is to leave open.
        """
        target, module = self._target(request)
        held = {} if module is None else dict(module.named_parameters(remove_duplicate=False))
        weights: dict[str, Tensor] = {name: held[name] for name in request.fields["weights"]}
        arguments, cotangent = _arguments(request), _tensor(request, "cotangent")
        _seed(request)
        leaves = [value for value in arguments if _is_floating(value)] if cotangent is not None else []
        for leaf in leaves:
            leaf.requires_grad_()
        with tracing.Tracing([*arguments, cotangent], weights) as seen:
            result = one_tensor(target(*arguments))
            outputs: list[Tensor | None] = [result]
            if cotangent is not None:
                leaves += [] if module is None else [value for _, value in named_parameters(module)]
                found = gradients(result, leaves, cotangent)
                outputs += [None if flags & wire.ABSENT else gradient for gradient, flags in found]
        return (), ((seen.told(outputs), 0),)

    def _replay(self, request: wire.Request) -> tuple[tuple[str, ...], Tensors]:
        """What comes of the trace that is the last tensor; before it come the weights. Nothing of an attempt is run.

        Fields: args, cotangent, names of the weights, forbidden words, inputs_after.
        """
        *tensors, trace = request.tensors
        names = request.fields["names"]
        weights = dict(zip(names, tensors[len(tensors) - len(names) :], strict=True))
        arguments, cotangent = _arguments(request), _tensor(request, "cotangent")
        given = [value for value in arguments if isinstance(value, Tensor)]
        _seed(request)
        result, *found = running.run(trace, [*arguments, cotangent], weights, request.fields["forbidden"])
        if cotangent is None and found:
            raise running.NotATrace("it gives more than a result")
        after = [(value, 0) for value in given] if request.fields["inputs_after"] else []
        told = [(torch.empty(0), wire.ABSENT) if gradient is None else (gradient, 0) for gradient in found]
        return (), (with_sharing(one_tensor(result), given), *after, *told)

    # ---------------------------------------------------------------------------------------------------- telling

    def _target(self, request: wire.Request) -> tuple[Any, nn.Module | None]:
        """What is called, and the module that it is, in the mode and with the weights that are asked for."""
        fields = request.fields
        if "module" not in fields:
            return self._entry(fields["name"]), None
        module = self._modules[fields["module"]]
        if fields.get("names"):
            copy_in(module, dict(zip(fields["names"], request.tensors[-len(fields["names"]) :], strict=True)))
        if fields.get("training") is not None:
            module.train(fields["training"])
        return module, module

    def _entry(self, name: str) -> Any:
        found = self._namespace.__dict__.get(name)
        if not callable(found):
            raise MissingEntry(name)
        return found

    def _names(self) -> tuple[str, ...]:
        """The functions and classes that the attempt defines, for "did you mean"."""
        own = self._namespace.__name__
        return tuple(
            name
            for name, value in list(self._namespace.__dict__.items())
            if callable(value) and getattr(value, "__module__", None) == own and not name.startswith("__")
        )[:50]


@contextlib.contextmanager
def _lenient_views() -> Iterator[None]:
    """Let `Tensor.view` do what `reshape` does, so that what comes after a mistaken view can be looked at as well."""
    view = Tensor.view
    Tensor.view = lambda self, *shape: view(self, *shape) if _is_dtype(shape) else self.reshape(*shape)  # type: ignore[method-assign]
    try:
        yield
    finally:
        Tensor.view = view  # type: ignore[method-assign]


def _is_dtype(shape: tuple[Any, ...]) -> bool:
    return len(shape) == 1 and isinstance(shape[0], torch.dtype)


def _seed(request: wire.Request) -> None:
    """Seed torch's generator, so that what is drawn does not depend on what was asked before."""
    if request.fields.get("seed") is not None:
        _manual_seed(request.fields["seed"])


def _tensor(request: wire.Request, field: str) -> Tensor | None:
    """The tensor whose place a field tells, if any."""
    place = request.fields.get(field)
    return None if place is None else request.tensors[place]


def _is_floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _arguments(request: wire.Request) -> list[Any]:
    """The arguments that a request describes: {"tensor": place}, {"device": name} or {"value": plain}."""
    decoded: list[Any] = []
    for described in request.fields["args"]:
        if "tensor" in described:
            decoded.append(request.tensors[described["tensor"]])
        elif "device" in described:
            decoded.append(torch.device(described["device"]))
        else:
            decoded.append(described["value"])
    return decoded
