"""What stands for a name that could not be imported or set, so that the code around it can be defined.

It may be an annotation, a base class, a decorator or a default. What computes with it raises NameError.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
import types
from typing import Any, NoReturn

from attn_kata.attempt import stand_ins
from attn_kata.protocol.usual_names import USUAL_FUNCTION, USUAL_LAYERS, USUAL_NAMES

_PROCESSOR = ("device", "DEVICE")
_ON_GPU = ("use_cuda", "USE_CUDA", "use_gpu", "USE_GPU")
_DEVICE = re.compile(r"(?:default|torch|gpu|main|my|current)_device|(?:[A-Z]+_)?DEVICE")
_MAKES_A_LOGGER = re.compile(r"(?:get|create|setup|set_up|init|make|build)_?logger$")  # which may write files
_LOGGER = re.compile(r"(?i)(?:\w*_)?log(?:ger|ging)?$")
_PRINTS = re.compile(r"(?:print|debug)_\w+|(?:pretty_?)?print|pprint")
# trunc_normal_ of timm, and others that write into a weight; init_weight of a layer
_FIRST_WEIGHTS = re.compile(
    r"(?:normal|uniform|init|scaling|constant|zeros|ones|xavier|kaiming|orthogonal)\w*_$"
    r"|^_?(?:init|initiali[sz]e|reset)_(?:\w+_)?(?:weights?|param(?:eter)?s?|linear|module|layer)$|^weights?_init$"
)
_NORMS_OF_WEIGHTS = ("weight_norm", "spectral_norm")
_OF_WEIGHTS = re.compile(r"(?i)(?:maybe_?|use_?|apply_?)?(?:spectral|weight)_?norm")
_TRAINER = "pl"  # PyTorch Lightning, as it is always called: a base class
_CLONES = ("clones", "get_clones", "_get_clones")  # of the annotated transformer, and of torch


class Missing:
    """A name that could not be imported; `missing_root` is how the source calls it. Until `close` it may be called."""

    open = True  # while the definitions of the source run

    def __init__(self, missing_root: str) -> None:
        self.missing_root = missing_root

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in USUAL_LAYERS and not Missing.open:  # layers.Linear, of a file of their own
            return stand_ins.layer(name)
        return Missing(self.missing_root)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """As a decorator it gives back what it decorates; as what makes a decorator, itself.

        With a function it may be either: what it gives back then decorates a class, and is the function for all else.
        """
        if not Missing.open:
            self._fail()
        decorated = given[0] if len(given) == 1 and not named else None
        if isinstance(decorated, types.FunctionType):
            return _either(decorated)
        return decorated if isinstance(decorated, type) else self

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        # After a module it is left out: a class cannot have a module, and then one that is made of it, for bases.
        is_beside = any(isinstance(one, type) and issubclass(one, stand_ins.module()) for one in bases)
        return () if is_beside else (stand_ins.base(),)

    def __getitem__(self, key: object) -> Missing:
        return self

    def __instancecheck__(self, instance: object) -> bool:
        return False  # nothing is of a class that is not here

    def __or__(self, other: object) -> Missing:
        return self

    __ror__ = __or__

    def __iter__(self) -> NoReturn:
        self._fail()

    def _computed(self, *others: Any) -> NoReturn:
        self._fail()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __pow__ = __rpow__ = _computed
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __neg__ = _computed
    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = __index__ = _computed

    def _fail(self) -> NoReturn:
        raise NameError(f"name '{self.missing_root}' is not defined", name=self.missing_root)


def _either(function: types.FunctionType) -> Any:
    """The function; called with a class alone it gives that back."""

    @functools.wraps(function)
    def either(*given: Any, **named: Any) -> Any:
        of_class = len(given) == 1 and isinstance(given[0], type) and not named
        return given[0] if of_class else function(*given, **named)

    return either


class _Book(stand_ins.Book, Missing):
    """The book's package: what it is not known to have is missing."""


class Undefined:
    """A class or function whose definition has raised: whoever calls it, or takes it for a base, meets that exception."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, *given: Any, **named: Any) -> NoReturn:
        raise self.error

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.error

    def __mro_entries__(self, bases: tuple[Any, ...]) -> NoReturn:
        raise self.error


def fill(statement: ast.Import | ast.ImportFrom, namespace: dict[str, Any]) -> None:
    """Give the names of an import that has failed what stands for them."""
    for alias in statement.names:
        if alias.name == "*":
            fill_usual(namespace)
            namespace.setdefault(_TRAINER, Missing(_TRAINER))
            continue
        name = alias.asname or alias.name.partition(".")[0]
        is_of_words = isinstance(statement, ast.ImportFrom) and (statement.module, alias.name) == (
            "fancy_einsum",
            "einsum",
        )
        # It may be the default of a parameter.
        stand_in = stand_ins.processor() if name in _PROCESSOR else Missing(name)
        namespace.setdefault(name, stand_ins.einsum_of_words if is_of_words else stand_in)


def fill_usual(namespace: dict[str, Any]) -> None:
    """Give the names that such code usually imports, where the namespace does not have them and they are installed.

    For code without its imports, and for `from … import *` of a module that is not here.
    """
    for name, (module, part) in USUAL_NAMES.items():
        whole = importlib.import_module(module)
        namespace.setdefault(name, getattr(whole, part) if part else whole)


def close(namespace: dict[str, Any]) -> None:
    """The definitions have run: from now on a missing name fails when it is called.

    But for the well-known ones there is something else:

    - a missing device, also one that nothing has set, is the processor, and a flag that asks for a GPU is off;
    - a logger, and what prints, says nothing; what sets first weights leaves them as they are; norms of weights do nothing;
    - a layer with the name of one of torch, also of a missing module, is that one; that of GPT-2 is itself; softmax is torch's;
    - a book's package has its functions for masks and heads;
    - the helpers of `stand_ins.HELPERS` are there, and so are the functions that copy a module.
    """
    import torch

    Missing.open = False
    for name in _PROCESSOR:  # which a script sets where it begins, `if __name__ == "__main__"`
        if isinstance(namespace.get(name, Missing(name)), Missing):
            namespace[name] = stand_ins.processor()
    for name in _ON_GPU:
        if isinstance(namespace.get(name, Missing(name)), Missing):
            namespace[name] = False
    for name, value in list(namespace.items()):
        if _LOGGER.match(name) and isinstance(value, Missing):
            namespace[name] = stand_ins.Silent()
        if _MAKES_A_LOGGER.match(name) and callable(value):
            namespace[name] = lambda *given, **named: stand_ins.Silent()
        if isinstance(value, Missing) and _DEVICE.fullmatch(name):  # default_device
            namespace[name] = stand_ins.processor()
        if isinstance(value, Missing) and _PRINTS.fullmatch(name):
            namespace[name] = stand_ins.says_nothing
        if isinstance(value, Missing) and (_FIRST_WEIGHTS.search(name) or _OF_WEIGHTS.fullmatch(name)):
            namespace[name] = stand_ins.as_it_is
    if isinstance(namespace.get("d2l"), Missing):
        namespace["d2l"] = _Book("d2l")
    for name in USUAL_LAYERS:
        if isinstance(namespace.get(name), Missing) and hasattr(torch.nn, name):
            namespace[name] = stand_ins.layer(name)
    # Of given weights they give others, by other names.
    for module in (torch.nn.utils, torch.nn.utils.parametrizations):
        for name in _NORMS_OF_WEIGHTS:
            setattr(module, name, stand_ins.as_it_is)
    namespace.update({name: stand_ins.as_it_is for name in _NORMS_OF_WEIGHTS if name in namespace})
    if isinstance(namespace.get("Conv1D"), Missing):
        namespace["Conv1D"] = stand_ins.layer_of_gpt2()
    for name, helper in stand_ins.HELPERS.items():
        if isinstance(namespace.get(name), Missing):
            namespace[name] = helper
    if isinstance(namespace.get(USUAL_FUNCTION), Missing):
        namespace[USUAL_FUNCTION] = stand_ins.softmax
    for name in _CLONES:
        if isinstance(namespace.get(name, Missing(name)), Missing):
            namespace[name] = stand_ins.copies
