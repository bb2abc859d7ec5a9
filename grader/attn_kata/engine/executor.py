"""Runs the requests of a grading against an attempt's code, in whichever process it is made.

In the attempt child the code is the candidate's. In the grader child and in tests the same executor runs the reference and
the mutants, so both sides of a comparison are made the same way.
"""

from __future__ import annotations

import contextlib
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

# Taken before any attempt runs: what an attempt does to torch later does not reach these.
_grad = torch.autograd.grad
_manual_seed = torch.default_generator.manual_seed  # torch.manual_seed formats three stacks for devices that nobody uses

MODULE_NAME = "attempt"

Tensors = tuple[tuple[Tensor, int], ...]
Answer = tuple[int, tuple[str, ...], Tensors]


class BadResult(Exception):
    """The attempt returned something that is not one plain tensor."""


class MissingEntry(Exception):
    """The attempt has no function or class of that name."""


class Executor:
    """One attempt's code and the modules built from it."""

    def __init__(self, namespace: types.ModuleType | None = None, filename: str = "attempt.py") -> None:
        self._namespace = namespace or types.ModuleType(MODULE_NAME)
        self._filename = filename
        self._modules: dict[int, nn.Module] = {}
        self._threads = count_threads()

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
            raise BadResult(f"{request.fields['name']}(…) is {_kind(built)}, not an nn.Module")
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
        arguments = _arguments(request)
        module: nn.Module | None = None
        target: Any
        if "module" in fields:
            module = self._modules[fields["module"]]
            if fields.get("names"):
                copy_in(module, dict(zip(fields["names"], request.tensors[-len(fields["names"]) :], strict=True)))
            if fields.get("training") is not None:
                module.train(fields["training"])
            target = module
        else:
            target = self._entry(fields["name"])
        given = [value for value in arguments if isinstance(value, Tensor)]
        _seed(request)
        cotangent = None if fields.get("cotangent") is None else request.tensors[fields["cotangent"]]
        labels = None if fields.get("labels") is None else request.tensors[fields["labels"]]
        differentiated = cotangent is not None or labels is not None
        leaves = [value for value in given if value.is_floating_point()] if differentiated else []
        for leaf in leaves:
            leaf.requires_grad_()

        texts: tuple[str, ...] = ()
        factors: tuple[Tensor, ...] = ()
        with _lenient_views() if fields.get("lenient_views") else contextlib.nullcontext():
            if fields.get("record"):
                with Recorder() as recorder, Evasion(threads=self._threads) as evasion:
                    output = target(*arguments)
                result = _one_tensor(output)
                if evasion.found:
                    raise BadResult(f"what ran could not be seen: {evasion.found}")
                texts = recorder.told(result)
            elif fields.get("mixing"):
                place = fields["mixing"]["answer"]
                with Mixing(fields["mixing"]["over"], None if place is None else request.tensors[place]) as mixing:
                    result = _one_tensor(target(*arguments))
                if place is None and mixing.factors is not None:
                    factors = mixing.factors
            else:
                result = _one_tensor(target(*arguments))
        if result.device.type != "cpu" and not any(isinstance(value, torch.device) for value in arguments):
            raise BadResult(f"returned a tensor on the device {result.device}; its inputs are on the CPU")
        told: list[tuple[Tensor, int]] = [(result, wire.SHARES_INPUT if _shares(result, given) else 0)]
        told += [(factor.detach(), 0) for factor in factors]
        if fields.get("inputs_after"):
            told += [(value.detach(), 0) for value in given]
        if labels is not None:
            cotangent = _of_cross_entropy(result, labels)
        if cotangent is not None:
            parameters: list[Tensor] = [] if module is None else [value for _, value in named_parameters(module)]
            told += _gradients(result, leaves + parameters, cotangent)
        return texts, tuple(told)

    # ---------------------------------------------------------------------------------------------------- telling

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


def _one_tensor(output: Any) -> Tensor:
    if type(output) not in (Tensor, nn.Parameter):
        raise BadResult(f"returned {_kind(output)}; the contract asks for one torch.Tensor")
    if output.layout is not torch.strided or output.is_quantized or output.is_nested:
        raise BadResult(f"returned a tensor of layout {output.layout}; the contract asks for an ordinary one")
    if output.dtype not in wire.DTYPES or output.dim() > wire.MAX_RANK:
        raise BadResult(f"returned a {output.dim()}-dimensional tensor of {output.dtype}")
    result: Tensor = output
    return result


def _kind(value: Any) -> str:
    """What a value is, in words: "None", "a tuple of 2", "an object of type numpy.ndarray"."""
    if value is None:
        return "None"
    if type(value) in (tuple, list, dict):
        return f"a {type(value).__name__} of {len(value)}"
    return f"an object of type {type(value).__module__}.{type(value).__qualname__}"[:200]


def _shares(result: Tensor, given: list[Tensor]) -> bool:
    if result.device.type != "cpu" or result.numel() == 0:
        return False
    pointer = result.untyped_storage().data_ptr()
    return any(
        value.device.type == "cpu" and value.numel() and value.untyped_storage().data_ptr() == pointer for value in given
    )


def _of_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The gradient of the mean cross-entropy by the logits (N, classes)."""
    if logits.dim() != 2 or len(logits) != len(labels):
        raise BadResult(f"returned shape {tuple(logits.shape)}; expected logits for {len(labels)} samples")
    right = torch.zeros_like(logits).scatter_(1, labels[:, None], 1.0)
    return (logits.detach().softmax(dim=1) - right) / len(labels)


def _gradients(result: Tensor, leaves: list[Tensor], cotangent: Tensor) -> list[tuple[Tensor, int]]:
    """The gradient for each leaf; ABSENT where none reaches it."""
    if result.shape != cotangent.shape:
        raise BadResult(f"returned shape {tuple(result.shape)}; expected {tuple(cotangent.shape)}")
    found: tuple[Tensor | None, ...] = (None,) * len(leaves)
    if result.requires_grad:
        # A scalar, because the first `grad_outputs` that torch is given makes it import half a second's worth of sympy.
        with torch.enable_grad():  # an attempt may have switched it off for itself
            found = _grad((result * cotangent.to(result.dtype)).sum(), leaves, allow_unused=True)
    return [
        (leaf.detach(), wire.ABSENT) if gradient is None else (gradient.detach(), 0)
        for leaf, gradient in zip(leaves, found, strict=True)
    ]
