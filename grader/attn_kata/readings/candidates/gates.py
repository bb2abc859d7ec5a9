"""Weights of the code that are set so that they change nothing, as no contract has them: gates, and layers that mix the heads.

A gate is a number that begins at 0 and multiplies what the attention gives, γ · out + x: with 0 the code gives back its
input, and nothing of the attention would be seen (SAGAN, Zhang et al., 2019). It is set to 1. Weights (H, H) mix the scores or
the weights of the heads (Talking-Heads Attention, Shazeer et al., 2020). They are set to the identity.
"""

from __future__ import annotations

import re

from attn_kata.readings.source import vocabulary
from attn_kata.readings.source.structure import Definition, Structure, code_of

_ZERO = (
    r"(?:torch\.)?(?:zeros\(\s*\(?\[?\s*(?:1\s*,?)?\s*\]?\)?\s*\)"
    r"|(?:tensor|FloatTensor|Tensor)\(\s*\[?\s*0\.?0*\s*\]?\s*\))"
)
_SIZE = r"(?:in_\w+\s*=\s*|out_\w+\s*=\s*)?(?:\w+\.)*(\w+)"
# nn.Parameter(torch.randn(heads, heads)), nn.Conv2d(heads, heads, 1, bias=False), nn.Linear(num_heads, num_heads)
_BETWEEN_HEADS = (
    rf"\s*=\s*(?:torch\.)?(?:nn\.)?(?:Parameter\(\s*(?:torch\.)?\w+\(\s*{_SIZE}\s*,\s*{_SIZE}\s*\)"
    rf"|Linear\(\s*{_SIZE}\s*,\s*{_SIZE}\s*[,)]|Conv2d\(\s*{_SIZE}\s*,\s*{_SIZE}\s*,\s*(?:kernel_size\s*=\s*)?\(?1\b)"
)


def of(definition: Definition, structure: Structure) -> tuple[str, ...]:
    """The paths of the gates, and of the layers and weights that mix the heads."""
    return tuple(
        path
        for path, made, owner in structure.parts(definition)
        if "*" not in path
        and (
            (made == "Parameter" and _is_gate(path.rpartition(".")[2], code_of(owner.text)))
            or (made in ("Parameter", "Linear", "Conv2d") and _mixes_heads(path.rpartition(".")[2], owner.text))
        )
    )


def _is_gate(name: str, code: str) -> bool:
    own = rf"self\.{re.escape(name)}"
    begins_at_0 = re.search(rf"{own}\s*=\s*(?:torch\.)?nn\.Parameter\(\s*{_ZERO}", code) or re.search(
        rf"{own}\s*=\s*Parameter\(\s*{_ZERO}", code
    )
    multiplies = re.search(rf"{own}(?:\.\w+\([^()]*\))?\s*\*(?!\*)|(?<!\*)\*\s*{own}\b|\bmul\([^()\n]*{own}\b", code)
    return begins_at_0 is not None and multiplies is not None


def _mixes_heads(name: str, text: str) -> bool:
    made = re.search(rf"self\.{re.escape(name)}{_BETWEEN_HEADS}", code_of(text))
    sizes = [] if made is None else [size for size in made.groups() if size]
    return bool(sizes) and all(vocabulary.size_in(size, text) == "H" for size in sizes)


def is_one(path: str, gates: tuple[str, ...]) -> bool:
    """Whether a parameter is one of them: by its own path, or by that of its layer."""
    return path in gates or re.sub(r"\.(?:weight|bias)$", "", path) in gates


def lines(gates: tuple[str, ...]) -> list[str]:
    """The lines of an adapter's builder that set them: one number to 1, a matrix to the identity, a bias to 0."""
    return [
        "    for name, gate in theirs.named_parameters():",
        f"        if name.removesuffix('.bias') in {gates!r} and name.endswith('.bias'):",
        "            _nn.init.zeros_(gate)",
        f"        elif name.removesuffix('.weight') in {gates!r} and gate.numel() == 1:",
        "            _nn.init.ones_(gate)",
        f"        elif name.removesuffix('.weight') in {gates!r}:",
        "            _nn.init.eye_(gate.detach().view(len(gate), -1))",
    ]
