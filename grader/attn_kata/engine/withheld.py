"""Ready-made operations put away before an attempt is loaded: from then on its answers are right without them, or wrong.

What an attempt's process says of what ran is its own word. That nothing forbidden *can* run needs no word: the dispatcher's
kernels are overridden by ones that refuse. Nothing in Python gives the old ones back, and every road to an operation
(an alias, `torch.ops`, a scripted function, a thread, a kernel taken in hand) leads through the dispatcher. What torch has
written in Python is emptied as well, where it is loaded; whoever copies its source has a source of their own.

Machine code is another matter: with `ctypes` an attempt can write into its own process, where libtorch still lies, and have
the kernels back (by ending what overrides them, found in memory) or call them by their symbols. So this alone lets nothing
pass: see `replay`. It is what sees a ready-made function that is made of allowed operations, where it is merely hidden.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import ctypes
import functools
import re
import sys
import types
import warnings
from collections.abc import Iterable
from typing import Any

import torch

from . import recorder

# Where a CPU tensor is served, whether or not the operation has a kernel of its own there; then where it may have one.
_ALWAYS = ("CPU", "AutogradCPU")
_WHERE_THERE_IS_ONE = (
    "Autograd", "CompositeImplicitAutograd", "CompositeImplicitAutogradNestedTensor", "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional", "AutocastCPU", "FuncTorchBatched", "FuncTorchBatchedDecomposition",
    "FuncTorchVmapMode", "BatchedNestedTensor", "NestedTensorCPU", "AutogradNestedTensor", "SparseCPU", "SparseCsrCPU",
    "QuantizedCPU", "MkldnnCPU",
)  # fmt: skip
# Interpreters that call kernels past the dispatcher, or have some of their own.
_PAST_THE_DISPATCHER = ("_jit_to_static_module", "_fuse_to_static_module", "_te")

_FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    _FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag


class Withheld(BaseException):
    """A ready-made operation was called where there is none. Not an Exception: a self-check's `except` is not meant."""


def put_away(words: Iterable[str]) -> None:
    """Let every operation and function of torch's refuse whose name contains one of the words. For good."""
    found = re.compile("|".join(map(re.escape, words))).search
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kernel is overridden
        for name in filter(found, operation_names()):
            _override(*name.split("::", 1))
    for function, name in recorder.READY_MADE.items():
        if found(name):
            function.__globals__[Withheld.__name__] = Withheld
            function.__code__ = _refuse.__code__
    recorder.forget()  # it holds the code that was taken away
    if found(recorder.FLEX):
        sys.modules[recorder.FLEX] = None  # type: ignore[assignment]  # it cannot be imported
    for name in _PAST_THE_DISPATCHER:
        with contextlib.suppress(AttributeError):
            delattr(torch._C, name)


def run(source: bytes, code: types.CodeType, namespace: dict[str, Any]) -> None:
    """Run a module's source but for the statements that call what is withheld: self-checks that compare with it.

    What comes after one of them may miss its names, so that from then on a statement that raises is left out as well.
    """
    tree: Any = compile(source, code.co_filename, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    left_out = False
    for statement in tree.body:
        alone = ast.Module([statement], type_ignores=[])
        try:
            exec(compile(alone, code.co_filename, "exec", code.co_flags & _FUTURE_FLAGS, dont_inherit=True), namespace)
        except (Withheld, ImportError):  # it was imported before: what is missing now is what is withheld
            left_out = True
        except Exception:
            if not left_out:
                raise


@functools.cache
def operation_names() -> tuple[str, ...]:
    """Every operation that the dispatcher knows, as namespace::name. Worth a look before it matters: it takes 3 ms."""
    return tuple(torch._C._dispatch_get_all_op_names())


def _override(space: str, name: str) -> None:
    """Override an operation's kernels with one that refuses.

    It would end with the object that registered it, which is why nobody is left who could let go of that object.
    """

    def refuse(*_: Any, **__: Any) -> Any:
        raise Withheld(f"{space}::{name}")

    registration = torch._C._dispatch_library("IMPL", space, "", "withheld", 0)
    for key in _ALWAYS:
        registration.impl(name, key, refuse)
    for key in _WHERE_THERE_IS_ONE:
        with contextlib.suppress(RuntimeError):  # a key that this torch does not know
            if torch._C._dispatch_has_kernel_for_dispatch_key(f"{space}::{name}", key):
                registration.impl(name, key, refuse)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(registration))


def _refuse(*_: Any, **__: Any) -> Any:
    raise Withheld  # found in the globals of the function that this becomes the code of
