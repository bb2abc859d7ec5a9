"""The adapter: a reading as Python that makes the code an attempt. It runs beside the code, or is written below it in a file.

A module's parameters get the contract's names and shapes. Before each call they are laid into the code's own layers, so its
own forward computes with them, and gradients come back through them.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace

from attn_kata.readings import laying, positions, rotations
from attn_kata.readings.contract import Contract
from attn_kata.readings.reading import ONE_QUERY, Reading

BUILDER = "build_theirs"

_HEAD = """\
import math as _math

import torch as _torch
from torch import nn as _nn

_theirs = {entry}
"""

_CONFIG = '''

class _Config:
    """Answers the names that the code asks of its config."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def __getitem__(self, name):
        return self.__dict__[name]

    def get(self, name, default=None):
        return self.__dict__.get(name, default)
'''


def source_of(reading: Reading, contract: Contract) -> str:
    """The adapter's source."""
    parts = [_HEAD.format(entry=reading.entry)]
    if contract.rotation:
        return parts[0] + rotations.source(reading)
    if any("." in name for name, _ in reading.build):
        parts.append(_CONFIG)
    if reading.unturned:
        parts.append(positions.HEAD)
    if reading.is_class:
        parts.append(_builder(reading))
    if reading.builder:
        parts.append(_mask_builder(reading, contract))
    if reading.entry != reading.builder:
        parts.append(_module(reading, contract) if contract.is_module else _functions(reading, contract))
    return "".join(parts)


def builder(reading: Reading) -> str:
    """Only what builds the code's own module, `build_theirs(E, H, D, C, p)`: to see its parameters."""
    config = _CONFIG if any("." in name for name, _ in reading.build) else ""
    turns = positions.HEAD if reading.unturned else ""
    return _HEAD.format(entry=reading.entry) + config + turns + _builder(reading)


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


def _builder(reading: Reading) -> str:
    given: dict[str, list[str]] = {}
    for name, value in reading.build:
        whole, _, part = name.partition(".")
        given.setdefault(whole, []).append(f"{part}={_size(value)}" if part else _size(value))
    configs = {name.partition(".")[0] for name, _ in reading.build if "." in name}
    arguments = ", ".join(
        f"{name}=_Config({', '.join(values)})" if name in configs else f"{name}={values[0]}"
        for name, values in given.items()
    )
    lines = [f"def {BUILDER}(E=8, H=1, D=8, C=8, p=0.0, I=8, V=8, L=256, G=1, M=8):"]
    if reading.globals:
        values = ", ".join(f"{name}={_size(value)}" for name, value in reading.globals)
        lines.append(f"    sizes = dict({values})")
        lines.append("    _theirs.forward.__globals__.update(sizes)")
    if (
        reading.off
    ):  # a ready-made attention is not there while it is built, so that the code makes what it needs without
        lines += [
            "    ready = _nn.functional.__dict__.pop('scaled_dot_product_attention', None)",
            "    try:",
            f"        theirs = _theirs({arguments})",
            "    finally:",
            "        _nn.functional.scaled_dot_product_attention = ready",
        ]
    else:
        lines.append(f"    theirs = _theirs({arguments})")
    lines += [f"    theirs.{name} = False" for name in reading.off]
    lines += positions.build_lines(reading.unturned) if reading.unturned else []
    if reading.bypassed:
        lines += [
            "    for path, _ in list(theirs.named_modules()):",
            "        owner, _, name = path.rpartition('.')",
            "        starred = '.'.join('*' if part.isdecimal() else part for part in path.split('.'))",
            f"        if path in {reading.bypassed!r} or starred in {reading.bypassed!r}:",
            "            theirs.get_submodule(owner)._modules[name] = _nn.Identity()",
        ]
    if reading.rates:
        lines += [
            "    for path, part in theirs.named_modules():",
            "        if '.'.join('*' if name.isdecimal() else name for name in path.split('.')) in "
            + f"{reading.rates!r}:",
            "            part.p = p",
        ]
    if reading.globals:
        lines.append('    theirs.__dict__["sizes_at_module_level"] = sizes')
    lines.append("    return theirs")
    return "\n\n\n" + "\n".join(lines) + "\n"


def _size(value: str) -> str:
    return value.replace("sqrt(D)", "_math.sqrt(D)")


# ------------------------------------------------------------------------------------------------------------ modules


def _module(reading: Reading, contract: Contract) -> str:
    symbols = [symbol for symbol, _ in contract.arguments]
    signature = ", ".join(
        symbol + (f"={default}" if default is not None else "") for symbol, default in contract.arguments
    )
    sizes = _sizes(symbols)
    given = ", ".join(
        f"{name}={name}" for name in ("E", "H", "D", "C", "p", "I", "V", "G", "M") if name in symbols or name in sizes
    )
    body = [
        f"def __init__(self, {signature}):",
        "    super().__init__()",
        *(f"    {name} = {value}" for name, value in sizes.items()),
        "    self.heads_of_theirs = H",
        *(["    self.groups_of_theirs = G"] if contract.has_groups else []),
        *(f"    {line}" for line in laying.layers(contract)),
        f"    self.theirs = {BUILDER}({given})",
        "    for path, value in list(self.theirs.named_parameters(remove_duplicate=False)):",
        "        owner, name = self.theirs.get_submodule(path.rpartition('.')[0]), path.rpartition('.')[2]",
        "        owner._parameters.pop(name, None)",
        "        owner.__dict__.pop(name, None)",
        "        owner._buffers[name] = value.detach()",
        "    for owner, name, _ in self.places():",
        "        owner._parameters.pop(name, None)",
        "        owner._buffers.pop(name, None)",
        "",
        "def laid(self):",
        '    """The parameters as the code stores them, by the path of its own."""',
        "    H = self.heads_of_theirs",
        *(["    G = self.groups_of_theirs"] if contract.has_groups else []),
        *(f"    {line}" for line in laying.laid(reading, contract)),
        "",
        "def places(self):",
        '    """Each of these parameters with the module that it belongs to, where this size of module has it."""',
        "    modules = dict(self.theirs.named_modules())",
        "    every = [(*path.rpartition('.')[::2], value) for path, value in self.laid().items()]",
        "    return [(modules[owner], name, value) for owner, name, value in every if owner in modules]",
        "",
        f"def forward(self, {_inputs(contract)}):",
        "    for owner, name, weight in self.places():",
        "        owner.__dict__[name] = weight",
        "    H = self.heads_of_theirs",
        *(f"    {line}" for line in _forward(reading, contract)),
    ]
    return f"\n\nclass {contract.entry}(_nn.Module):\n" + textwrap.indent("\n".join(body), "    ") + "\n"


def _sizes(symbols: list[str]) -> dict[str, str]:
    """Sizes that the contract's constructor does not have, from those that it has."""
    every = {
        "H": "1",
        "D": "E // H",
        "E": "D * H" if "H" in symbols else "D" if "D" in symbols else "I",
        "V": "D",
        "I": "E",
        "C": "I" if "I" in symbols else "E",
        "p": "0.0",
    }
    order = ("H", "E", "D", "V", "I", "C", "p") if "E" not in symbols else ("H", "D", "V", "I", "C", "p")
    return {name: every[name] for name in order if name not in symbols}


def _inputs(contract: Contract) -> str:
    return ", ".join(f"{name}=None" if name == "mask" else name for name in contract.inputs)


def _forward(reading: Reading, contract: Contract) -> list[str]:
    first = contract.inputs[0]
    keys = "context" if contract.is_cross else "k" if contract.has_score else "key" if contract.takes_qkv else first
    lines = []
    if reading.dims:
        lines += [
            f"lead = {first}.shape[:-2]",
            f"{first} = {first}.flatten(0, -3) if {first}.dim() > 2 else {first}[None]",
        ]
    if contract.is_block and reading.mask != "none":  # the caller's mask is what hides later keys
        lines.append(
            f"mask = _torch.ones({first}.shape[-2], {first}.shape[-2], dtype=_torch.bool, device={first}.device).tril()"
        )
        lines += _mask(reading, f"mask.expand({first}.shape[0], H, {first}.shape[-2], {first}.shape[-2])", first)
    if "mask" in contract.inputs and reading.mask != "none":
        queries = "1" if reading.query in ONE_QUERY else f"{first}.shape[-2]"
        whole = f"mask.expand({first}.shape[0], H, {queries}, {keys}.shape[-2])"
        if contract.mask == "keys":
            given = ["mask = mask[:, None, None, :]", *_mask(reading, whole, first)]
            lines += _given_mask(reading, given, f"{first}.shape[0], {keys}.shape[-2]", first)
        else:
            shape = f"{first}.shape[-2], {keys}.shape[-2]"
            lines += _given_mask(reading, _mask(reading, whole, first), shape, first)
    if contract.has_score:
        return lines + _scored(reading)
    if reading.order == "time":
        lines += [f"{name} = {name}.transpose(0, 1)" for name in contract.inputs if name != "mask"]
    if reading.globals:
        lines.append("_theirs.forward.__globals__.update(self.theirs.sizes_at_module_level)")
    if contract.returns:
        shape = f"{first}.shape[0], H, {first}.shape[-2], {keys}.shape[-2]"
        lines.append(f"weights = {first}.new_zeros({shape})  # for code that returns none")
    lines += positions.call_lines(reading.call, reading.caches, first)
    if reading.dims == 2:  # one sample at a time
        part = "" if reading.returns == "tensor" else f"[{reading.returns}]"
        lines.append(f"out = _torch.stack([self.theirs({_arguments(reading)}){part} for {first} in {first}])")
    else:
        lines.append(f"out = self.theirs({_arguments(reading)})")
    if len(reading.places) > 1:
        lines.append(f"weights = out[{reading.places[1]}]")
    if reading.places and reading.dims != 2:
        lines.append(f"out = out[{reading.places[0]}]")
    elif contract.returns:
        lines += [
            "if not isinstance(out, _torch.Tensor):",
            "    raise TypeError(f'returned a {type(out).__name__} of {len(out)}; one tensor was expected')",
        ]
    elif (
        reading.residual or reading.order == "time" or reading.dims or ("o" in contract.layers and not reading.o.weight)
    ):
        lines += ["if not isinstance(out, _torch.Tensor):", "    return out"]
    if reading.residual:
        lines.append(f"out = out - {first}")
    if reading.order == "time":
        lines.append("out = out.transpose(0, 1)")
    if "o" in contract.layers and not reading.o.weight and not contract.is_block:
        lines.append(f"out = self.{contract.layers['o'].name}(out)")
    elif (
        "o" in contract.layers and not contract.is_block and "." in reading.o.weight.removesuffix(".weight")
    ):  # it may be left out where H = 1
        owner = reading.o.weight.rpartition(".")[0]
        lines += [
            f"if '{owner}' not in dict(self.theirs.named_modules()):",
            f"    out = self.{contract.layers['o'].name}(out)",
        ]
    lines.append("return out.reshape(*lead, *out.shape[-2:])" if reading.dims else "return out")
    if contract.returns:
        lines[-1] = "return out, weights"
    return lines


def _scored(reading: Reading) -> list[str]:
    """The call of a learned score, once for each query where the code takes one at a time."""
    part = f"[{reading.places[0]}]" if reading.places else ""
    called = f"self.theirs({_arguments(reading)}){part}"
    lines = ["values = v"]
    if reading.order == "time":
        lines += ["k, v = k.transpose(0, 1), v.transpose(0, 1)"]
        lines += ["q = q.transpose(0, 1)"] * (reading.query == "(B, T, E)")
    each = {
        "(B, E)": "q.unbind(1)",
        "(B, 1, E)": "q.split(1, 1)",
        "(1, B, E)": "q.transpose(0, 1).split(1, 0)",
    }.get(reading.query)
    if each is None:
        lines += [f"out = {called}", "if not isinstance(out, _torch.Tensor):", "    return out"]
        lines += ["out = out.transpose(0, 1)"] * (reading.order == "time" and not reading.returns_weights)
        lines += ["out = out @ values"] * reading.returns_weights
        return [*lines, "return out"]
    lines += [
        f"outs = [{called} for q in {each}]",
        "if not all(isinstance(out, _torch.Tensor) for out in outs):",
        "    return outs[0]",
        "if any(out.numel() != len(values) * out.shape[-1] for out in outs if out.shape[-1:] != (1,)):",
        "    raise ValueError(f'it returned {tuple(outs[0].shape)} for one query')",
        "outs = [out.reshape(len(values), -1) for out in outs]",
    ]
    lines += ["outs = [(out[:, None] @ values)[:, 0] for out in outs]"] * reading.returns_weights
    return [*lines, "return _torch.stack(outs, 1)"]


def _arguments(reading: Reading) -> str:
    return ", ".join(f"{name}={value}" for name, value in reading.call)


def _mask(reading: Reading, whole: str, like: str) -> list[str]:
    """The contract's mask (True = keep) as the code takes it. `whole` is the mask as (B, H, Tq, Tk)."""
    part = {
        "(B, H, T, T)": "",
        "(B, 1, T, T)": "[:, :1]",
        "(B, T, T)": "[:, 0]",
        "(B*H, T, T)": ".flatten(0, 1)",
        "(T, T)": "[0, 0]",
        "(B, 1, 1, T)": "[:, :1, :1]",
        "(B, 1, T)": "[:, 0, :1]",
        "(B, T)": "[:, 0, 0]",
    }
    lines = []
    if reading.mask == "lengths":
        lines.append(f"mask = {whole}[:, 0, 0].sum(-1)")
    else:
        if reading.shape != "any":
            lines.append(f"mask = {whole}{part[reading.shape]}")
        if reading.mask == "hide":
            lines.append("mask = ~mask")
        if reading.mask == "additive":
            lowest = f"_torch.finfo({like}.dtype).min"
            lines.append(f"mask = _torch.zeros_like(mask, dtype={like}.dtype).masked_fill(~mask, {lowest})")
        elif reading.mask_type == "int":
            lines.append("mask = mask.long()")
        elif reading.mask_type == "float":
            lines.append(f"mask = mask.to({like}.dtype)")
    return lines


def _given_mask(reading: Reading, lines: list[str], shape: str, like: str) -> list[str]:
    """The lines where a mask is given; an open one first for code that needs a mask."""
    if reading.needs_mask:
        return [
            "if mask is None:",
            f"    mask = _torch.ones_like({like}[..., :1], dtype=_torch.bool).new_ones({shape})",
            *lines,
        ]
    return ["if mask is not None:", *(f"    {line}" for line in lines)] if lines else []


# ---------------------------------------------------------------------------------------------------------- functions


def _mask_builder(reading: Reading, contract: Contract) -> str:
    """The contract's function that builds a mask, True = keep, by theirs."""
    meant = {"keep": "mask.bool()", "hide": "~mask.bool()", "additive": "mask == 0"}[reading.mask]
    if reading.lengths == 1:  # the queries are the last positions
        made, rows = "_their_mask(num_keys)", "[num_keys - num_queries :]"
    else:
        made, rows = "_their_mask(num_queries, num_keys)", ""
    return f"""

_their_mask = {reading.builder}


def {contract.builder}(num_queries, num_keys, device=None):
    mask = _torch.as_tensor({made})
    mask = {meant}
    return mask.reshape(mask.shape[-2:]){rows}
"""


def _functions(reading: Reading, contract: Contract) -> str:
    called = f"{BUILDER}(D=q.shape[-1], E=q.shape[-1], p=p).train(training)" if reading.is_class else "_theirs"
    lines = ["def _attend(q, k, v, mask=None, p=0.0, training=False):", "    lead = q.shape[:-2]"]
    if reading.builder:
        made = (
            "_their_mask(k.shape[-2])[..., k.shape[-2] - q.shape[-2] :, :]"
            if reading.lengths == 1
            else "_their_mask(q.shape[-2], k.shape[-2])"
        )
        lines.append(f"    mask = {made}")
    if reading.dims == 4:
        lines += [
            "    q, k, v = (",
            "        part.flatten(0, -4) if part.dim() > 4 else part[(None,) * (4 - part.dim())] for part in (q, k, v)",
            "    )",
        ]
    elif reading.dims in (2, 3):
        lines += ["    q, k, v = (part.flatten(0, -3) if part.dim() > 2 else part[None] for part in (q, k, v))"]
    if reading.mask != "none" and not reading.builder:
        whole = "mask.expand(*lead, q.shape[-2], k.shape[-2])"
        if reading.dims in (2, 3):  # the heads are in the batch: (B H, Tq, Tk)
            given = [f"mask = {whole}.reshape(-1, 1, q.shape[-2], k.shape[-2])"]
            given += _mask(replace(reading, shape="(B, T, T)") if reading.shape == "any" else reading, "mask", "q")
        else:
            given = _mask(reading, whole, "q")
        lines += [f"    {line}" for line in _given_mask(reading, given, "q.shape[-2], k.shape[-2]", "q")]
    if reading.dims == 2:  # one sample and head at a time
        part = "" if reading.returns == "tensor" else f"[{reading.returns}]"
        each = (
            "for q, k, v in zip(q, k, v)"
            if reading.mask == "none" or reading.builder
            else "for q, k, v, mask in zip(q, k, v, masks)"
        )
        if reading.mask != "none" and not reading.builder:
            lines.append("    masks = [None] * len(q) if mask is None else mask")
        lines.append(f"    out = _torch.stack([{called}({_arguments(reading)}){part} {each}])")
    else:
        lines.append(f"    out = {called}({_arguments(reading)})")
    if reading.returns != "tensor" and reading.dims != 2:
        lines.append(f"    out = out[{reading.returns}]")
    elif reading.dims:
        lines += ["    if not isinstance(out, _torch.Tensor):", "        return out"]
    lines.append("    return out.reshape(*lead, *out.shape[-2:])" if reading.dims else "    return out")
    roles = {"q": "q", "k": "k", "v": "v", "query": "q", "keys": "k", "values": "v", "keep": "mask"}
    passed = ", ".join(
        f"{name}={name}" if name in ("mask", "p", "training") else roles.get(name, name) for name in contract.inputs
    )
    signature = ", ".join(contract.inputs)
    lines += ["", "", f"def {contract.entry}({signature}):", f"    return _attend({passed})"]
    if contract.with_mask is not None:
        lines += ["", "", f"def {contract.with_mask.entry}(q, k, v, mask):", "    return _attend(q, k, v, mask)"]
    return "\n\n\n" + "\n".join(lines) + "\n"
