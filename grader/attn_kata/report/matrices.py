"""A failing example as text: expected, got and difference, side by side if they fit; weights also as shades."""

from __future__ import annotations

import textwrap

from attn_kata.report.model import Example
from attn_kata.report.plain import one_line

Cell = float | None
MOST = 8  # rows and columns that are shown
GAP = "   "
SHADES = " ░▒▓█"


def picture(example: Example, width: int, *, brief: bool = False) -> list[str]:
    """The example in lines of at most `width`, with as many digits as fit side by side, and fewer columns where none fit.

    `brief` leaves out what does not fit beside the first block, and the shades.
    """
    most = next(most for most in range(MOST, 0, -1) if most == 1 or _widest(example, most) <= width)
    expected, got = _cut(example.expected, most), _cut(example.got, most)
    for form in _forms(example):
        blocks = [_block("expected", _numbers(expected, form)), _block("got", _numbers(got, form))]
        difference = _difference(expected, got, form)
        if difference:
            blocks.append(_block("difference", difference))
        if _across(blocks) <= width:
            break
    if (brief or _are_weights(example)) and _across(blocks) > width:
        blocks = blocks[:2]  # the shades below show the difference
    lines = [*textwrap.wrap(_heading(example, most), width), *_beside(blocks, width)]
    if _are_weights(example) and not brief:
        shaded = [_block("expected", _shades(expected)), _block("got", _shades(got))]
        lines += ["", *_beside(shaded, width)]
    return lines


def _heading(example: Example, most: int) -> str:
    rows, columns = len(example.expected), max(map(len, example.expected), default=0)
    cut = ", ".join(
        f"the first {shown} of {count} {name}"
        for shown, count, name in ((MOST, rows, "rows"), (most, columns, "columns"))
        if count > shown
    )
    what, row, column = (one_line(text, most=60) for text in (example.what, example.rows, example.columns))
    down = f"down: {row}, " if row else ""
    return f"{what}   ({down}across: {column}{cut and f'; {cut}'})"


def _widest(example: Example, most: int) -> int:
    """The columns that the widest block needs, with the fewest digits, where `most` columns are shown."""
    expected, got, form = _cut(example.expected, most), _cut(example.got, most), _forms(example)[-1]
    every = (_numbers(expected, form), _numbers(got, form), _difference(expected, got, form))
    return max(len(line) for cells in every for line in _block("", cells))


def _cut(matrix: list[list[Cell]], columns: int) -> list[list[Cell]]:
    return [row[:columns] for row in matrix[:MOST]]


def _forms(example: Example) -> tuple[str, ...]:
    shown = [abs(cell) for row in (*example.expected, *example.got) for cell in row if cell is not None]
    return (".4f", ".3f", ".2f") if max(shown, default=0.0) < 1000 else (".3g",)


def _numbers(matrix: list[list[Cell]], form: str) -> list[list[str]]:
    return [["nan/inf" if cell is None else format(cell, form) for cell in row] for row in matrix]


def _difference(expected: list[list[Cell]], got: list[list[Cell]], form: str) -> list[list[str]]:
    """got - expected, with a dot for equal numbers; [] when the shapes differ."""
    if [len(row) for row in expected] != [len(row) for row in got]:
        return []

    def cell(right: Cell, left: Cell) -> str:
        if right is None or left is None:
            return "·" if right is left else "!"
        off = left - right
        if abs(off) <= 1e-5 * (1 + abs(right)):
            return "·"
        rounded = format(off, "+" + form)
        return rounded if float(rounded) else format(off, "+.0e")

    return [[cell(*pair) for pair in zip(*rows, strict=True)] for rows in zip(expected, got, strict=True)]


def _are_weights(example: Example) -> bool:
    cells = [cell for row in (*example.expected, *example.got) for cell in row]
    return example.columns.startswith("key") and all(cell is not None and -1e-9 <= cell <= 1 + 1e-9 for cell in cells)


def _shades(matrix: list[list[Cell]]) -> list[list[str]]:
    return [["".join(SHADES[min(4, round((cell or 0.0) * 4))] * 2 for cell in row)] for row in matrix]


def _block(title: str, cells: list[list[str]]) -> list[str]:
    """Lines of one width: the title, then right-aligned columns."""
    widest = [max(len(row[at]) for row in cells if at < len(row)) for at in range(max(map(len, cells), default=0))]
    lines = [" ".join(cell.rjust(size) for cell, size in zip(row, widest, strict=False)) for row in cells]
    across = max(map(len, [title, *lines]))
    return [line.ljust(across) for line in [title, *lines]]


def _across(blocks: list[list[str]]) -> int:
    return sum(len(block[0]) for block in blocks) + len(GAP) * (len(blocks) - 1)


def _beside(blocks: list[list[str]], width: int) -> list[str]:
    """As many blocks side by side as fit, the others below them."""
    count = next((count for count in range(len(blocks), 1, -1) if _across(blocks[:count]) <= width), 1)
    row, rest = blocks[:count], blocks[count:]
    tallest = max(map(len, row))
    padded = [[*block, *[" " * len(block[0])] * (tallest - len(block))] for block in row]
    lines = [GAP.join(parts).rstrip() for parts in zip(*padded, strict=True)]
    return [*lines, "", *_beside(rest, width)] if rest else lines
