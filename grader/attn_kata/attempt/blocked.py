"""Blocked operations: once blocked, a ready-made operation raises an error in the attempt process, for good.

`from_scratch` is tested first, and all operations are recorded. If no forbidden one was seen, the forbidden operations are
blocked. All other properties are tested in this state, so an attempt that hid a call meets a refusal. The kernels are
overridden in the dispatcher, so an alias, `torch.ops`, a scripted function and a thread all reach the override. Functions that
torch has written in Python get a body that refuses.

Python code cannot undo this. Machine code (`ctypes`) can, and nothing here tries to stop it: see the README.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from attn_kata.attempt import recorder

# Dispatch keys of CPU tensors: always overridden. The other keys are overridden only if the operation has a kernel there.
_CPU_KEYS = ("CPU", "AutogradCPU")
_OTHER_KEYS = (
    "Autograd",
    "CompositeImplicitAutograd",
    "CompositeImplicitAutogradNestedTensor",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "AutocastCPU",
    "FuncTorchBatched",
    "FuncTorchBatchedDecomposition",
    "FuncTorchVmapMode",
    "BatchedNestedTensor",
    "NestedTensorCPU",
    "AutogradNestedTensor",
    "SparseCPU",
    "SparseCsrCPU",
    "QuantizedCPU",
    "MkldnnCPU",
)
# Modules in which torch has written attentions and softmaxes in Python, by steps that are not forbidden.
_IN_PYTHON = (
    "torch.nn.functional",
    "torch._refs",
    "torch._refs.nn.functional",
    "torch._refs.special",
    "torch.masked._ops",
    "torch._decomp.decompositions",
    "torch._higher_order_ops.flex_attention",
)
_ONLY_WHERE_IMPORTED = (recorder.FLEX, "torch.onnx.ops", "torch.onnx.ops._impl")
# Interpreters that call kernels without the dispatcher, or have their own kernels.
_BYPASS_DISPATCHER = ("_jit_to_static_module", "_fuse_to_static_module", "_te")
_REFUSE = "__attn_kata_refuse__"  # the name of `_refuse` in the globals of a Python function that refuses

_NAME = "the name of the operation"

_refusals: list[tuple[str, int]] = []  # (operation, the attempt's line or 0), since the last `take_refusals`
_filename = ""
_autograd = False  # whether autograd is blocked: then it is off in every call, too


class Refused(BaseException):
    """A blocked operation was called. Not an Exception, so that `except Exception` does not hide it."""


def block(words: Iterable[str], filename: str) -> None:
    """Block every operation and function of torch whose name contains one of the words, for good.

    `filename` is the attempt's file as its code objects name it. With it a refusal can be reported with the attempt's line.
    """
    global _autograd, _filename
    _filename = filename
    words = tuple(words)
    _autograd = _autograd or any("autograd" in word for word in words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about every overridden kernel
        for name in operations_named(words):
            _override(*name.split("::", 1))
    for function, name in {**functions_in_python(), **_functions(_ONLY_WHERE_IMPORTED), **recorder.READY_MADE}.items():
        if _is_forbidden(name, words):
            function.__globals__[_REFUSE] = _refuse
            function.__code__ = _refusing_code(name)
    recorder.forget()  # it holds the original functions and their code
    for name in _ONLY_WHERE_IMPORTED:
        if _is_forbidden(name, words):
            sys.modules[name] = None  # type: ignore[assignment]  # importing it raises
    for name in _BYPASS_DISPATCHER:
        with contextlib.suppress(AttributeError):
            delattr(torch._C, name)


def take_refusals() -> list[tuple[str, int]]:
    """Return and clear the refusals, as (operation, the attempt's line or 0)."""
    taken = _refusals[:]
    _refusals.clear()
    return taken


@contextlib.contextmanager
def autograd_off_if_blocked() -> Iterator[None]:
    """Where autograd is blocked: it is off, and an operation that records for it all the same is refused."""
    if not _autograd:
        yield
        return

    def refuse(_: Any) -> Any:
        _refuse("torch.autograd.grad_mode.enable_grad")

    with torch.no_grad(), torch.autograd.graph.saved_tensors_hooks(refuse, refuse):
        yield


def prepare() -> None:
    """Find now what `block` needs to know of torch, in this process and in those that are forked from it. It takes 10 ms."""
    for name in filter(recorder.named_like_attention, operation_names()):
        _other_keys(name)
    _text_of_names()
    _refusing_template()
    functions_in_python()


@functools.cache
def operation_names() -> tuple[str, ...]:
    """Every operation that the dispatcher knows, as namespace::name. The first call takes 3 ms: make it early."""
    return tuple(torch._C._dispatch_get_all_op_names())


def operations_named(words: Iterable[str]) -> list[str]:
    """Every operation whose name contains one of the words. The words are looked for in one long text: that is quicker."""
    text, found = _text_of_names(), set()
    for word in words:
        at = text.find(word)
        while at >= 0:
            end = text.index("\n", at)
            found.add(text[text.rindex("\n", 0, at) + 1 : end])
            at = text.find(word, end)
    return sorted(found)


@functools.cache
def _text_of_names() -> str:
    """Every operation's name on a line, with an empty line at both ends."""
    return "\n".join(("", *operation_names(), ""))


def _is_forbidden(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name for word in words)


@functools.cache
def functions_in_python() -> dict[types.FunctionType, str]:
    """Every attention and softmax that torch has written in Python, with its name. Slow the first time: call it early."""
    return _functions(_IN_PYTHON)


def _functions(modules: Iterable[str]) -> dict[types.FunctionType, str]:
    """The innermost functions of these modules, as far as they are loaded, that are called like an attention or a softmax."""
    found = {}
    for module in modules:
        for value in list(vars(sys.modules.get(module, None) or types).values()):
            function = inspect.unwrap(getattr(value, "_init_fn", value)) if callable(value) else None
            if isinstance(function, types.FunctionType) and not function.__code__.co_freevars:
                name = recorder.name_of(function.__code__)
                if name:
                    found[function] = name
    return found


@functools.cache
def _other_keys(operation: str) -> tuple[str, ...]:
    """The dispatch keys, beyond those of CPU tensors, at which an operation has a kernel."""
    found = []
    for key in _OTHER_KEYS:
        with contextlib.suppress(RuntimeError):  # this version of torch does not know the key
            if torch._C._dispatch_has_kernel_for_dispatch_key(operation, key):
                found.append(key)
    return tuple(found)


def _override(space: str, name: str) -> None:
    """Override an operation's kernels with one that refuses.

    The override lasts as long as the object that registered it. That object is never freed, and nobody can reach it.
    """

    def refuse(*_: Any, **__: Any) -> Any:
        _refuse(f"{space}::{name}")

    registration = torch._C._dispatch_library("IMPL", space, "", "blocked", 0)
    for key in (*_CPU_KEYS, *_other_keys(f"{space}::{name}")):
        registration.impl(name, key, refuse)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(registration))


def _refusing_code(name: str) -> types.CodeType:
    """The code of a Python function that refuses under this name."""
    template = _refusing_template()
    return template.replace(co_consts=tuple(name if value == _NAME else value for value in template.co_consts))


@functools.cache
def _refusing_template() -> types.CodeType:
    """The code of a function that refuses under the name _NAME. It is compiled once: compiling takes longer than replacing."""
    namespace: dict[str, Any] = {}
    exec(f"def refuse(*_, **__):\n    {_REFUSE}({_NAME!r})", namespace)
    code: types.CodeType = namespace["refuse"].__code__
    return code


def _refuse(name: str) -> None:
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename != _filename:
        frame = frame.f_back
    _refusals.append((name, 0 if frame is None else frame.f_lineno))
    raise Refused(name)
