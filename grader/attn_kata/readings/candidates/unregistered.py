"""Layers in a plain list, and plain tensors: they are no parameters of the module that holds them (module.unregistered)."""

from __future__ import annotations

import re

from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Structure, code_of

# One attribute alone: several may be unpacked from a list.
_LISTS = re.compile(r"^\s*self\.(\w+)\s*(?::[^=\n]+)?=\s*\[\s*([\w.]+)\(", re.MULTILINE)
_EMPTY = re.compile(r"^\s*self\.(\w+)\s*(?::[^=\n]+)?=\s*(?:\[\]|list\(\))", re.MULTILINE)
_TENSORS = re.compile(
    r"^\s*self\.(\w+)\s*=\s*(?:torch|nn\.init|init)\.(?:rand|randn|zeros|ones|empty|xavier\w+|kaiming\w+|normal_|uniform_)\(",
    re.MULTILINE,
)
_KNOWN = r"add_module|register_module|setattr|(?:ModuleList|ModuleDict|ParameterList|Sequential)\([^)\n]*self\.{}\b"


def names(definition: Definition, structure: Structure) -> tuple[str, ...]:
    """The attributes of a class, and of the classes that it uses, that hold layers in a plain list, or q, k, v or o."""
    found = []
    for one in structure.reach(definition):
        code = code_of(one.text) if one.is_class else ""
        made = [(name, maker) for name, maker in _LISTS.findall(code)]
        for name in _EMPTY.findall(code):
            made += [(name, maker) for maker in re.findall(rf"self\.{name}\.append\(\s*([\w.]+)\(", code)]
        made = [
            (name, maker)
            for name, maker in made
            if re.search(_KNOWN.format(name), code) is None
            and (maker.rpartition(".")[2] != "Parameter" or _is_only_indexed(name, code))
        ]
        found += [name for name, maker in made if _is_layer(maker, structure)]
        found += [name for name in _TENSORS.findall(code) if vocabulary.role_of(name) in ("q", "k", "v", "o")]
    return tuple(dict.fromkeys(found))


def _is_only_indexed(name: str, code: str) -> bool:
    """Whether a class takes single matrices out of its list, and nothing in it could make them known to the module."""
    if re.search(r"register_parameter|_parameters\b|ParameterList|ParameterDict", code):
        return False
    return all(
        one in ("[", ".append(")
        for one in re.findall(rf"\bself\.{name}\b(?!\s*(?::[^=\n]+)?=)(\.\w+\(|.|$)", code, re.MULTILINE)
    )


def _is_layer(maker: str, structure: Structure) -> bool:
    inner = structure.find(maker)
    is_own = inner is not None and inner.is_class and re.search(r"\bModule\b", inner.text) is not None
    return is_own or maker.rpartition(".")[2] in ("Linear", "Conv1d", "Parameter")


def lines(names: tuple[str, ...]) -> list[str]:
    """The lines of an adapter's builder that make these layers known to their module."""
    return [
        "    for part in list(theirs.modules()):",
        f"        for name in {names!r}:",
        "            held = part.__dict__.get(name)",
        "            if isinstance(held, (list, tuple)) and all(isinstance(one, _nn.Module) for one in held):",
        "                del part.__dict__[name]",
        "                setattr(part, name, _nn.ModuleList(held))",
        "            if isinstance(held, (list, tuple)) and held and all(isinstance(one, _nn.Parameter) for one in held):",
        "                del part.__dict__[name]",
        "                setattr(part, name, _nn.ParameterList(held))",
        "            if isinstance(held, _torch.Tensor) and held.dim() == 2:",
        "                del part.__dict__[name]",
        "                setattr(part, name, _nn.Parameter(held.detach()))",
    ]
