"""What stands for a name that could not be imported or set, so that the code around it can be defined.

It may be an annotation, a base class, a decorator or a default. What computes with it raises NameError.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import math
import re
import types
from typing import Any, NoReturn

from attn_kata.protocol.usual_names import USUAL_FUNCTION, USUAL_LAYERS, USUAL_NAMES

_PROCESSOR = ("device", "DEVICE")
_MAKES_A_LOGGER = re.compile(r"(?:get|create|setup|set_up|init|make|build)_?logger$")  # which may write files
_LOGGER = re.compile(r"(?i)(?:\w*_)?log(?:ger|ging)?$")
# trunc_normal_ of timm, and others that write into a weight; init_weight of a layer
_FIRST_WEIGHTS = re.compile(
    r"(?:normal|uniform|init|scaling|constant|zeros|ones|xavier|kaiming|orthogonal)\w*_$"
    r"|^_?(?:init|initiali[sz]e|reset)_(?:\w+_)?(?:weights?|param(?:eter)?s?|linear|module|layer)$|^weights?_init$"
)
_TRAINER = "pl"  # PyTorch Lightning, as it is always called: a base class
_CLONES = ("clones", "get_clones", "_get_clones")  # of the annotated transformer, and of torch


_OF_A_BASE = re.compile(r"(?:layer_?)?norm|ln|dropout|drop")


class Missing:
    """A name that could not be imported; `missing_root` is how the source calls it. Until `close` it may be called."""

    open = True  # while the definitions of the source run

    def __init__(self, missing_root: str) -> None:
        self.missing_root = missing_root

    def __getattr__(self, name: str) -> Missing:
        if name.startswith("__"):
            raise AttributeError(name)
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
        return (_base(),)

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
        stand_in = _processor() if name in _PROCESSOR else Missing(name)  # it may be the default of a parameter
        namespace.setdefault(name, _einsum_of_words if is_of_words else stand_in)


def fill_usual(namespace: dict[str, Any]) -> None:
    """Give the names that such code usually imports, where the namespace does not have them and they are installed.

    For code without its imports, and for `from … import *` of a module that is not here.
    """
    for name, (module, part) in USUAL_NAMES.items():
        with contextlib.suppress(ImportError):  # numpy and einops may not be there
            whole = importlib.import_module(module)
            namespace.setdefault(name, getattr(whole, part) if part else whole)


def close(namespace: dict[str, Any]) -> None:
    """The definitions have run: from now on a missing name fails when it is called.

    But a missing device is the processor, a missing logger, or one that is made, says nothing, what sets first weights leaves
    them as they are, a layer with the name of one of torch is that one, that of GPT-2 is itself, weight_norm does nothing,
    softmax is torch's, a book's package has its functions for masks and heads, NumPy has its roots and constants, and the
    well-known functions that copy a module, compare sizes, make masks of lengths, apply a mask before a softmax, and ask
    whether there is a value, are there.
    """
    import torch

    Missing.open = False
    for name in _PROCESSOR:
        if isinstance(namespace.get(name), Missing):
            namespace[name] = _processor()
    for name, value in list(namespace.items()):
        if _LOGGER.match(name) and isinstance(value, Missing):
            namespace[name] = _Silent()
        if _MAKES_A_LOGGER.match(name) and callable(value):
            namespace[name] = lambda *given, **named: _Silent()
        if isinstance(value, Missing) and _FIRST_WEIGHTS.search(name):
            namespace[name] = _as_it_is
    if isinstance(namespace.get("d2l"), Missing):
        namespace["d2l"] = _Book("d2l")
    for name in ("np", "numpy"):
        if isinstance(namespace.get(name), Missing):
            namespace[name] = _Numbers(name)
            torch.Tensor.numpy = _without_numpy  # type: ignore[method-assign, assignment]
    for name in USUAL_LAYERS:
        if isinstance(namespace.get(name), Missing) and hasattr(torch.nn, name):
            namespace[name] = getattr(torch.nn, name)
    # Of given weights it gives others, by the names weight_g and weight_v.
    for module in (torch.nn.utils, torch.nn.utils.parametrizations):
        module.weight_norm = _as_it_is  # type: ignore[attr-defined]
    if "weight_norm" in namespace:
        namespace["weight_norm"] = _as_it_is
    if isinstance(namespace.get("Conv1D"), Missing):
        namespace["Conv1D"] = _layer_of_gpt2()
    for name, helper in _HELPERS.items():
        if isinstance(namespace.get(name), Missing):
            namespace[name] = helper
    if isinstance(namespace.get(USUAL_FUNCTION), Missing):
        namespace[USUAL_FUNCTION] = _softmax
    for name in _CLONES:
        if isinstance(namespace.get(name, Missing(name)), Missing):
            namespace[name] = _copies


def _softmax(scores: Any, dim: int = -1, **named: Any) -> Any:
    """torch's softmax; where no dimension is given, along the last one."""
    import torch

    return torch.softmax(scores, named.get("axis", dim))


def _processor() -> Any:
    import torch

    return torch.device("cpu")


def _all_equal(*sizes: Any) -> None:
    """As OpenNMT's `aeq`: raises AssertionError where the sizes differ."""
    assert all(one == sizes[0] for one in sizes), f"Not all arguments have the same value: {sizes}"


def _mask_of_lengths(lengths: Any, max_len: Any = None, *more: Any) -> Any:
    """As OpenNMT's `sequence_mask`: (B, max_len), True for the tokens. With x (B, T, …) before the lengths, the book's."""
    import torch

    if lengths.dim() > 1:
        return _Book.sequence_mask(lengths, max_len, *more)
    tokens = torch.arange(int(max_len or lengths.max()), device=lengths.device)
    return tokens < lengths[:, None]


def _exists(value: Any) -> bool:
    """As in code in the style of x-transformers."""
    return value is not None


def _default(value: Any, otherwise: Any) -> Any:
    """As in code in the style of x-transformers; `otherwise` may be a function that makes it."""
    if value is not None:
        return value
    return otherwise() if isinstance(otherwise, types.FunctionType) else otherwise


def _masked_softmax(scores: Any, keep: Any, dim: int = -1, **named: Any) -> Any:
    """As in the code that Stanford's CS224N hands out: (scores, mask, dim), 1 = may attend. With lengths, the book's."""
    import torch

    if keep is None or (keep.dim() < scores.dim() and not keep.is_floating_point() and keep.dtype != torch.bool):
        return _Book.masked_softmax(scores, keep)
    keep = keep.to(scores.dtype)
    return torch.softmax(keep * scores + (1 - keep) * -1e30, dim)


_HELPERS = {
    "masked_softmax": _masked_softmax,
    "aeq": _all_equal,
    "sequence_mask": _mask_of_lengths,
    "exists": _exists,
    "default": _default,
}


def _as_it_is(tensor: Any, *given: Any, **named: Any) -> Any:
    """In the place of what sets the first weights of a layer: the grading sets them anyway."""
    return tensor


def _einsum_of_words(pattern: str, *operands: Any) -> Any:
    """torch.einsum with whole words for dimensions, "batch query head, batch key head -> batch query key"."""
    import torch

    letters: dict[str, str] = {}

    def letter(word: re.Match[str]) -> str:
        return letters.setdefault(word[0], chr(ord("a") + len(letters)))

    return torch.einsum(re.sub(r"\w+", letter, pattern).replace(" ", ""), *operands)


class _Silent:
    """A logger: whatever it is told, it does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *given, **named: None


class _Book(Missing):
    """What code from Dive into Deep Learning (Zhang et al., 2021) takes from the book's own package."""

    @staticmethod
    def sequence_mask(x: Any, valid_len: Any, value: float = 0) -> Any:
        """x (N, T, …) with `value` from place valid_len (N,) on, in place."""
        import torch

        x[torch.arange(x.shape[1], device=x.device) >= valid_len[:, None]] = value
        return x

    @staticmethod
    def masked_softmax(scores: Any, valid_lens: Any) -> Any:
        """The softmax of scores (B, Tq, Tk) over the first valid_lens, (B,) or (B, Tq), keys."""
        import torch

        if valid_lens is not None:
            lengths = valid_lens[:, None] if valid_lens.dim() == 1 else valid_lens
            hidden = torch.arange(scores.shape[-1], device=scores.device) >= lengths[..., None]  # (B, Tq or 1, Tk)
            scores = scores.masked_fill(hidden, -1e6)
        return scores.softmax(-1)

    @staticmethod
    def transpose_qkv(x: Any, num_heads: int) -> Any:
        """(B, T, H * D) to (B * H, T, D)."""
        return x.unflatten(-1, (num_heads, -1)).transpose(1, 2).flatten(0, 1)

    @staticmethod
    def transpose_output(x: Any, num_heads: int) -> Any:
        """(B * H, T, D) to (B, T, H * D)."""
        return x.unflatten(0, (-1, num_heads)).transpose(1, 2).flatten(2)


class _Numbers(Missing):
    """What attention code takes from NumPy for plain numbers: `q @ k.T / np.sqrt(d_k)`, `-np.inf`."""

    sqrt = staticmethod(math.sqrt)
    exp = staticmethod(math.exp)
    log = staticmethod(math.log)
    sin = staticmethod(math.sin)
    cos = staticmethod(math.cos)
    ceil = staticmethod(math.ceil)
    floor = staticmethod(math.floor)
    power = staticmethod(math.pow)
    inf, pi, e = math.inf, math.pi, math.e

    @staticmethod
    def finfo(dtype: Any) -> Any:
        """As in ESPnet: `numpy.finfo(torch.tensor(0, dtype=scores.dtype).numpy().dtype).min`."""
        import torch

        return torch.finfo(dtype)


class _Array:
    """In the place of an array of NumPy, which is not installed: its dtype and shape, and no more."""

    def __init__(self, tensor: Any) -> None:
        self.dtype, self.shape = tensor.dtype, tuple(tensor.shape)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError("Numpy is not available")  # as torch says


def _without_numpy(tensor: Any) -> _Array:
    """Tensor.numpy. Raises what torch raises."""
    if tensor.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    return _Array(tensor)


def _copies(*given: Any, **named: Any) -> Any:
    """As many copies of a module, in a list, whatever the parameters are called and in which order they come."""
    import copy

    from torch import nn

    values = [*given, *named.values()]
    module = next(one for one in values if isinstance(one, nn.Module))
    return nn.ModuleList([copy.deepcopy(module) for one in values if type(one) is int for _ in range(one)])


def _layer_of_gpt2() -> type:
    """As `Conv1D` of transformers: a linear layer of nf features, whose weight is (nx, nf)."""
    import torch
    from torch import nn

    class Conv1D(nn.Module):
        def __init__(self, nf: int, nx: int) -> None:
            super().__init__()
            self.nf = nf
            self.weight = nn.Parameter(torch.empty(nx, nf).normal_(std=0.02))
            self.bias = nn.Parameter(torch.zeros(nf))

        def forward(self, x: Any) -> Any:
            return x @ self.weight + self.bias

    return Conv1D


def _base() -> type:
    """In the place of a base class: a module whose constructor takes anything, as those of training libraries do.

    A norm and a dropout that such a base makes for its classes change nothing.
    """
    from torch import nn

    class Base(nn.Module):
        def __getattr__(self, name: str) -> Any:
            return nn.Identity() if _OF_A_BASE.fullmatch(name) else super().__getattr__(name)

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__()

        def save_hyperparameters(self, *given: Any, **named: Any) -> None:
            """As a LightningModule has it."""

    return Base
