"""Gates: numbers of the code that begin at 0 and multiply what the attention gives, γ · out + x. They are set to 1.

With a gate of 0 the code gives back its input, and nothing of the attention would be seen (SAGAN, Zhang et al., 2019).
"""

from __future__ import annotations

import re

from attn_kata.readings.source.structure import Definition, Structure, code_of

_ZERO = (
    r"(?:torch\.)?(?:zeros\(\s*\(?\[?\s*(?:1\s*,?)?\s*\]?\)?\s*\)"
    r"|(?:tensor|FloatTensor|Tensor)\(\s*\[?\s*0\.?0*\s*\]?\s*\))"
)


def of(definition: Definition, structure: Structure) -> tuple[str, ...]:
    """The paths of the gates."""
    return tuple(
        path
        for path, made, owner in structure.parts(definition)
        if made == "Parameter" and "*" not in path and _is_gate(path.rpartition(".")[2], code_of(owner.text))
    )


def _is_gate(name: str, code: str) -> bool:
    own = rf"self\.{re.escape(name)}"
    begins_at_0 = re.search(rf"{own}\s*=\s*(?:torch\.)?nn\.Parameter\(\s*{_ZERO}", code) or re.search(
        rf"{own}\s*=\s*Parameter\(\s*{_ZERO}", code
    )
    multiplies = re.search(rf"{own}(?:\.\w+\([^()]*\))?\s*\*(?!\*)|(?<!\*)\*\s*{own}\b|\bmul\([^()\n]*{own}\b", code)
    return begins_at_0 is not None and multiplies is not None


def lines(gates: tuple[str, ...]) -> list[str]:
    """The lines of an adapter's builder that open them."""
    return [
        "    for name, gate in theirs.named_parameters():",
        f"        if name in {gates!r}:",
        "            _nn.init.ones_(gate)",
    ]
