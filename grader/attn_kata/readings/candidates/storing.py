"""How a source multiplies with a matrix of its own: as (in, out), as `x @ W`, or as (out, in), as `F.linear(x, W)`."""

from __future__ import annotations

import re

_TURNED = r"\s*\.\s*(?:T\b|mT\b|t\(\)|transpose\()"


def of_matrix(name: str, text: str) -> str | None:
    """The layout of the matrix `self.<name>`: "columns", "rows", or None where the source does not say.

    >>> [of_matrix("W", text) for text in ("x @ self.W", "x @ self.W.T", "F.linear(x, self.W)", "self.W")]
    ['columns', 'rows', 'rows', None]
    >>> of_matrix("W", "torch.einsum('bte,eo->bto', x, self.W)"), of_matrix("W", "einsum('oe,bte->bto', self.W, x)")
    ('columns', 'rows')
    """
    own = rf"self\.{re.escape(name)}\b"
    if re.search(rf"linear\([^()]*,\s*{own}(?!{_TURNED})", text):
        return "rows"
    product = re.search(rf"(?:@|matmul\([^()]*,)\s*{own}({_TURNED})?", text)
    if product is not None:
        return "rows" if product[1] else "columns"
    for spec, operands in re.findall(r"einsum\(\s*[\"']([^\"']+)[\"']\s*,([^=]*)", text):
        place = next((at for at, one in enumerate(_parts(operands)) if re.fullmatch(own, one)), None)
        given, _, result = re.sub(r"\s", "", spec).partition("->")
        if place is None or place >= len(given.split(",")):
            continue
        letters = given.split(",")[place]
        if len(letters) == 2:
            return "rows" if letters[1] not in result else "columns" if letters[0] not in result else None
    return None


def _parts(operands: str) -> list[str]:
    """The operands of a call, cut at the commas outside of brackets, up to the one that closes the call."""
    found, depth = [""], 0
    for one in operands:
        depth += (one in "([{") - (one in ")]}")
        if depth < 0:
            break
        if one == "," and not depth:
            found.append("")
        else:
            found[-1] += one
    return [one.strip() for one in found]
