"""The adapter: a reading as Python that makes the code an attempt. It runs beside the code, or is written below it in a file.

A module's parameters get the contract's names and shapes. Before each call they are laid into the code's own layers, so its
own forward computes with them, and gradients come back through them.
"""

from __future__ import annotations

import re
from dataclasses import replace

from attn_kata.readings.adapters import free_calls, function_adapter, laying, module_adapter, own_code, rotation_adapter
from attn_kata.readings.candidates import caching, positions
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import Reading
from attn_kata.readings.source.structure import Definition

_HEAD = """\
import inspect as _inspect
import math as _math

import torch as _torch
from torch import nn as _nn

_theirs = {entry}
"""

# torch hands every call of its functions to such a mode, those of its own modules too.
_PROCESSOR = '''
from torch.overrides import TorchFunctionMode as _TorchFunctionMode


def _here(value):
    """The processor in the place of a GPU."""
    is_gpu = isinstance(value, str) and value.startswith("cuda")
    is_gpu = is_gpu or (isinstance(value, _torch.device) and value.type == "cuda")
    return _torch.device("cpu") if is_gpu else value


class _Processor(_TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is _torch.Tensor.cuda:
            return args[0]
        kwargs = {name: _here(value) for name, value in (kwargs or {}).items()}
        return function(*(_here(value) for value in args), **kwargs)


for _name in ("range_push", "range_pop", "range_start", "range_end", "mark"):  # they mark times of a GPU
    setattr(_torch.cuda.nvtx, _name, lambda *given, **named: 0)
for _name in ("FloatTensor", "DoubleTensor", "HalfTensor", "LongTensor", "IntTensor", "ByteTensor", "BoolTensor"):
    setattr(_torch.cuda, _name, getattr(_torch, _name))
for _name in ("synchronize", "empty_cache", "set_device"):  # there is nothing to wait for, and nothing to free
    setattr(_torch.cuda, _name, lambda *given, **named: None)


def _on_processor(function):
    """The function; what it puts on a GPU stays on the processor."""

    def called(*given, **named):
        with _Processor():
            return function(*given, **named)

    return called
'''

_FULL = '''
from torch.overrides import TorchFunctionMode as _TorchFunctionMode

_HALVES = (_torch.float16, _torch.bfloat16)
_TO_HALF = (_torch.Tensor.half, _torch.Tensor.bfloat16)


class _Full(_TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in _TO_HALF:
            return args[0]
        if kwargs.get("dtype") in _HALVES:
            del kwargs["dtype"]
        if any(value in _HALVES for value in args if isinstance(value, _torch.dtype)):
            args = tuple(value for value in args if not (isinstance(value, _torch.dtype) and value in _HALVES))
            if len(args) == 1 and not kwargs:  # x.to(torch.float16)
                return args[0]
        return function(*args, **kwargs)


def _in_full(function):
    """The function; what it casts to half precision stays as precise as it is."""

    def called(*given, **named):
        with _Full():
            return function(*given, **named)

    return called
'''

_UNROUNDED = '''

def _unrounded(function):
    """The function; what it rounds stays as it is."""

    def called(*given, **named):
        of_torch, of_tensors = _torch.round, _torch.Tensor.round
        _torch.round = _torch.Tensor.round = lambda value, *given, **named: value
        try:
            return function(*given, **named)
        finally:
            _torch.round, _torch.Tensor.round = of_torch, of_tensors

    return called
'''

_PART = '''

def _part(result, name):
    """A part of a dict, or of an object such as a dataclass."""
    return result[name] if isinstance(result, dict) else getattr(result, name)
'''

_HANDED_ON = '''

def _handed_on(result, out):
    """The cache in a result: what is neither the output nor one tensor of weights, and is no empty part."""
    parts = result.values() if isinstance(result, dict) else result
    parts = parts if isinstance(result, (dict, tuple, list)) else getattr(result, "__dict__", {}).values()
    others = [part for part in parts if part is not out and part is not None]
    whole = [part for part in others if not isinstance(part, _torch.Tensor) or part.dim() > 4]
    return (whole or others or [None])[-1]
'''

_AS_WIDE = '''

def _as_wide(cache, dtype):
    """A cache that is made first, its tensors in the dtype of the inputs."""
    if isinstance(cache, _nn.Module):
        return cache.to(dtype)
    for name, value in vars(cache).items():
        if isinstance(value, _torch.Tensor) and value.is_floating_point():
            setattr(cache, name, value.to(dtype))
    return cache
'''

_NOTHING = '''

class _Nothing(dict):
    """An empty cache, {} or with None under each name."""

    def __missing__(self, name):
        return None
'''

_HOLDS_SOMETHING = '''

def _holds_something(kept):
    """Whether something was written into a cache: a tensor, or an object that is no longer empty."""
    return bool(kept.any()) if isinstance(kept, _torch.Tensor) else kept is not None
'''

_CALLER = '''

class _Caller(_nn.Module):
    """In the place of the module that calls a function: in eval(), with one key-value head for each head."""

    def __init__(self):
        super().__init__()
        self.eval()

    def __getattr__(self, name):
        if "group" in name or "n_rep" in name:
            return 1
        return super().__getattr__(name)
'''

_CONFIG = '''

class _Config:
    """Answers the names that the code asks of its config, also of a part of it; the others as the code's own config does."""

    def __init__(self, _own=None, _class=None, **values):
        self._class = _class
        self.__dict__.update({name: self if value is _Config else value for name, value in values.items()})
        while type(_own).__name__ == "_Config":  # of an earlier module: nested, they would get too deep
            _own = _own.__dict__["_own"]
        self._own = _own

    @property
    def __class__(self):  # of code that asks isinstance(config, ModelConfig)
        # A class whose base is not installed here stands on a module, and a module in an attribute is a layer.
        is_plain = isinstance(self._class, type) and not issubclass(self._class, _nn.Module)
        return self._class if is_plain else _Config

    def __getattr__(self, name):
        # What stands for a class that is not installed here has everything.
        if not name.startswith("_") and isinstance(self._class, type) and callable(getattr(self._class, name, None)):
            return lambda *given, **named: None  # config.validate()
        if name.startswith("_") or self._own is None:
            raise AttributeError(name)
        return None if type(self._own).__name__ == "Missing" else getattr(self._own, name)

    def __getitem__(self, name):
        return self.__dict__[name]

    def __contains__(self, name):
        return name in self.__dict__

    def get(self, name, default=None):
        return self.__dict__.get(name, default)

    def items(self):
        return [(name, value) for name, value in self.__dict__.items() if name not in ("_own", "_class")]


def _class_of(name):
    """The class that the code's constructor says this argument is of, or None."""
    said = getattr(_theirs.__init__, "__annotations__", {}).get(name)
    return getattr(_theirs.__init__, "__globals__", {}).get(said) if isinstance(said, str) else said
'''


def of_own_weights(reading: Reading, contract: Contract) -> str:
    """The same for a module, with the weights that the code makes itself, and not the kata's."""
    return source_of(reading, contract, own_weights=True)


def source_of(reading: Reading, contract: Contract, *, own_weights: bool = False) -> str:
    """The adapter's source."""
    parts = [_HEAD.format(entry=reading.entry)]
    if contract.rotation:
        return parts[0] + rotation_adapter.source(reading)
    if _has_config(reading):
        parts.append(_CONFIG)
    if not all(place.isdecimal() for place in reading.places):
        parts.append(_PART)
    if reading.processor:
        parts.append(_PROCESSOR if reading.is_class else f"{_PROCESSOR}\n\n_theirs = _on_processor({reading.entry})\n")
    if reading.full_precision:
        parts.append(_FULL if reading.is_class else f"{_FULL}\n\n_theirs = _in_full(_theirs)\n")
    if reading.unrounded:
        parts.append(_UNROUNDED if reading.is_class else f"{_UNROUNDED}\n\n_theirs = _unrounded(_theirs)\n")
    if reading.replaces_turns or reading.angles:
        parts.append(positions.HEAD)
    if any(value == "angles" for _, value in reading.call):
        parts.append(positions.TABLES)
    if any(layer.layout == "wide" for layer in (reading.q, reading.o)):
        parts.append(laying.WIDE)
    if reading.mlp_in.layout == "wider":
        parts.append(laying.WIDER)
    if reading.cache:
        parts.append(_NOTHING if reading.cache == "dict" else _AS_WIDE)
    if caching.is_handed_back(reading):
        parts.append(_HANDED_ON)
    elif reading.by_token:
        parts.append(_HOLDS_SOMETHING)
    if any(value == "module" for _, value in reading.call):
        parts.append(_CALLER)
    if reading.is_class:
        parts.append(own_code.builder(reading))
    if reading.builder:
        parts.append(function_adapter.mask_builder(reading, contract))
    if reading.entry != reading.builder:
        parts.append(
            module_adapter.source(reading, contract, own_weights=own_weights)
            if contract.is_module
            else function_adapter.source(reading, contract)
        )
    return "".join(parts)


def _has_config(reading: Reading) -> bool:
    return any("." in name for name, _ in reading.sizes)


def builder(reading: Reading) -> str:
    """Only what builds the code's own module, `build_theirs(E, H, D, C, p)`: to see its parameters."""
    config = _CONFIG if _has_config(reading) else ""
    turns = positions.HEAD if reading.replaces_turns or reading.angles else ""
    turns += _PROCESSOR * reading.processor + _FULL * reading.full_precision + _UNROUNDED * reading.unrounded
    return _HEAD.format(entry=reading.entry) + config + turns + own_code.builder(reading)


def of_free_calls(reading: Reading, definition: Definition) -> str:
    """What calls the code with inputs of one form after another, `call_theirs(number)`."""
    config = _CONFIG if _has_config(reading) else ""
    turns = positions.HEAD if reading.replaces_turns or reading.angles else ""
    turns += _PROCESSOR * reading.processor + _FULL * reading.full_precision + _UNROUNDED * reading.unrounded
    return _HEAD.format(entry=reading.entry) + config + turns + free_calls.source(reading, definition)


def below(source: str, reading: Reading, contract: Contract) -> str:
    """The code with the adapter below it, in one file. Where both have the entry's name, the code's own gets an underscore."""
    entries = {contract.entry, *([contract.with_mask.entry] if contract.with_mask is not None else [])}
    entries |= {contract.builder} - {""}
    entries |= {"rope_attention"} if contract.rotation else set()
    renamed = reading
    for name in sorted(entries):
        source = re.sub(rf"\b{name}\b", f"{name}_", source)
        if reading.entry == name:
            renamed = replace(renamed, entry=f"{name}_")
        if reading.builder == name:
            renamed = replace(renamed, builder=f"{name}_")
        if reading.table == name:
            renamed = replace(renamed, table=f"{name}_")
    said = "\n".join(f"#   --read '{flag}'" for flag in reading.flags())
    head = f"# The adapter that attn-kata wrote: the code above as an attempt at {contract.kata}. It was read with\n{said}\n"
    text = source_of(renamed, contract)
    return f"{source.rstrip()}\n\n\n{head}\n{text}"
