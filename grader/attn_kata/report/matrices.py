"""A failing example as text: expected, got and difference, side by side where they fit; weights as shades too."""

from __future__ import annotations

from attn_kata.report.model import Example
from attn_kata.report.plain import one_line

Cell = float | None
MOST = 8  # rows and columns that are shown
GAP = "    "
SHADES = " ░▒▓█"


def picture(example: Example, width: int) -> list[str]:
    """The example in lines of at most `width` where its numbers allow that."""
    expected, got = _cut(example.expected), _cut(example.got)
    blocks = [_block("expected", _numbers(expected, example)), _block("got", _numbers(got, example))]
    difference = _difference(expected, got)
    if difference:
        blocks.append(_block("difference", difference))
    lines = [_heading(example), *_beside(blocks, width)]
    if _are_weights(example):
        shaded = [_block("expected", _shades(expected)), _block("got", _shades(got))]
        lines += ["", *_beside(shaded, width)]
    return lines


def _heading(example: Example) -> str:
    rows, columns = len(example.expected), max(map(len, example.expected), default=0)
    cut = f", the first {MOST} of {max(rows, columns)}" if max(rows, columns) > MOST else ""
    what, row, column = (one_line(text, most=60) for text in (example.what, example.rows, example.columns))
    return f"{what}   (down: {row}, across: {column}{cut})"


def _cut(matrix: list[list[Cell]]) -> list[list[Cell]]:
    return [row[:MOST] for row in matrix[:MOST]]


def _numbers(matrix: list[list[Cell]], example: Example) -> list[list[str]]:
    shown = [abs(cell) for row in (*example.expected, *example.got) for cell in row if cell is not None]
    form = "{:.4f}" if max(shown, default=0.0) < 1000 else "{:.3g}"
    return [["not finite" if cell is None else form.format(cell) for cell in row] for row in matrix]


def _difference(expected: list[list[Cell]], got: list[list[Cell]]) -> list[list[str]]:
    """got − expected, a dot where they agree; nothing where the shapes differ."""
    if [len(row) for row in expected] != [len(row) for row in got]:
        return []

    def cell(right: Cell, left: Cell) -> str:
        if right is None or left is None:
            return "·" if right is left else "!"
        return "·" if abs(left - right) <= 1e-5 * (1 + abs(right)) else f"{left - right:+.4g}"

    return [[cell(*pair) for pair in zip(*rows, strict=True)] for rows in zip(expected, got, strict=True)]


def _are_weights(example: Example) -> bool:
    cells = [cell for row in (*example.expected, *example.got) for cell in row]
    return example.columns.startswith("key") and all(cell is not None and -1e-9 <= cell <= 1 + 1e-9 for cell in cells)


def _shades(matrix: list[list[Cell]]) -> list[list[str]]:
    return [["".join(SHADES[min(4, round((cell or 0.0) * 4))] * 2 for cell in row)] for row in matrix]


def _block(title: str, cells: list[list[str]]) -> list[str]:
    """Lines of one width: the title, then right-aligned columns."""
    widest = [max(len(row[at]) for row in cells if at < len(row)) for at in range(max(map(len, cells), default=0))]
    lines = ["  ".join(cell.rjust(size) for cell, size in zip(row, widest, strict=False)) for row in cells]
    across = max(map(len, [title, *lines]))
    return [line.ljust(across) for line in [title, *lines]]


def _beside(blocks: list[list[str]], width: int) -> list[str]:
    if sum(len(block[0]) for block in blocks) + len(GAP) * (len(blocks) - 1) > width:
        return [line.rstrip() for number, block in enumerate(blocks) for line in (["", *block] if number else block)]
    tallest = max(map(len, blocks))
    padded = [[*block, *[" " * len(block[0])] * (tallest - len(block))] for block in blocks]
    return [GAP.join(row).rstrip() for row in zip(*padded, strict=True)]
