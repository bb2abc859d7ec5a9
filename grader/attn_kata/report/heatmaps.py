"""Matrices as drawings: cells with a position, a shade and a text. The page's template draws them as SVG.

An Example becomes three matrices: expected, the attempt's, and their difference. Weights also show the mask: a weight of
exactly 0 was masked. A layout (`diagnosis.pictures.of_layout`) shows where each number of a projection ended up, and
tiles (`of_tiles`) which of them were computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from attn_kata.report.model import Example
from attn_kata.report.plain import one_line

Cell = float | None
Matrix = list[list[Cell]]
Kind = Literal["weights", "values", "layout", "tiles"]

MOST = 12  # rows and columns that are drawn
SIZE = 44  # of a cell, in the units of the drawing
HEIGHT = 30
LEFT, TOP = 44, 32  # room for the axes
NOTHING = 1e-12  # a weight below it was masked
SAME = 1e-5
TILES = "tiles: "  # begins the title of an Example whose numbers are shares of tiles
LAYOUT = "token, head, column"  # begins the title of an Example whose numbers are places of three digits


@dataclass(frozen=True, kw_only=True)
class Square:
    """One cell: its position, its text, a shade from 0 to 1 of the colour `ink`, and whether it is marked as wrong."""

    x: int
    y: int
    text: str
    ink: str
    shade: float
    hidden: bool  # drawn as hatched: a weight of exactly 0
    wrong: bool

    @property
    def bright(self) -> bool:
        """Whether the text needs the background colour to be readable."""
        return self.shade > 0.72


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One matrix. `summary` describes the picture in words."""

    title: str
    rows: str
    columns: str
    squares: tuple[Square, ...]
    down: int
    across: int
    summary: str

    @property
    def width(self) -> int:
        return LEFT + SIZE * self.across + 2

    @property
    def height(self) -> int:
        return TOP + HEIGHT * self.down + 20


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """The panels of one Example, with title and legend."""

    what: str
    panels: tuple[Panel, ...]
    legend: str


def draw(example: Example) -> list[Drawing]:
    """The Example as drawings: its numbers and, for weights with a mask, the applied mask."""
    expected, got = _cut(example.expected), _cut(example.got)
    kind = _kind(example)
    drawings = [_numbers(example, expected, got, kind)]
    if kind == "weights" and _same_shape(expected, got) and any(map(_masked, _flat(expected))):
        drawings.append(_mask(example, expected, got))
    return drawings


def _kind(example: Example) -> Kind:
    cells = _flat(example.expected) + _flat(example.got)
    if example.what.startswith(LAYOUT):
        return "layout"
    if example.what.startswith(TILES):
        return "tiles"
    weights = all(cell is not None and -1e-9 <= cell <= 1 + 1e-9 for cell in cells)
    return "weights" if example.columns.startswith("key") and weights else "values"


def _numbers(example: Example, expected: Matrix, got: Matrix, kind: Kind) -> Drawing:
    if kind == "layout":
        shown = "The name of a cell says where its number comes from: token head·column. Each head has a colour."
        panels = [
            _panel(example, "contract", expected, _place_of()),
            _panel(example, "yours", got, _place_of(), against=expected),
        ]
        return Drawing(what="The merged heads, side by side", panels=tuple(panels), legend=shown)
    if kind == "tiles":
        shown = (
            "A cell is a tile: the share of its pairs of query and key that reach the output. "
            "Hatched: the tile was not computed, or its result is lost. Outlined: different from the contract."
        )
        panels = [
            _panel(example, "contract", expected, _share),
            _panel(example, "yours", got, _share, against=expected),
        ]
        return Drawing(what="The tiles", panels=tuple(panels), legend=shown)
    largest = max((abs(cell) for cell in _flat(expected) + _flat(got) if cell is not None), default=0.0)
    look = _weight if kind == "weights" else _value(largest)
    panels = [_panel(example, "expected", expected, look), _panel(example, "got", got, look, against=expected)]
    legend = "Outlined: different from the contract."
    if kind == "weights" and any(map(_masked, _flat(expected) + _flat(got))):
        legend = "Hatched: a weight of exactly 0. " + legend
    if _same_shape(expected, got):
        difference = [
            [None if right is None or left is None else left - right for right, left in zip(*rows, strict=True)]
            for rows in zip(expected, got, strict=True)
        ]
        off = max((abs(cell) for cell in _flat(difference) if cell is not None), default=0.0)
        panels.append(_panel(example, "got - expected", difference, _difference(off)))
    return Drawing(what=one_line(example.what), panels=tuple(panels), legend=legend)


def _mask(example: Example, expected: Matrix, got: Matrix) -> Drawing:
    def look(cell: Cell) -> tuple[str, str, float]:
        return ("", "weight", 0.0) if _masked(cell) else ("●", "weight", 0.25)

    panels = [
        _panel(example, "contract", expected, look),
        _panel(example, "yours", got, look, against=expected, differs=_masked_otherwise),
    ]
    legend = (
        "Dot: the query attends to the key. Hatched: the weight is exactly 0. Outlined: different from the contract."
    )
    return Drawing(what="The mask, from the weights", panels=tuple(panels), legend=legend)


def _panel(
    example: Example,
    title: str,
    matrix: Matrix,
    look: Callable[[Cell], tuple[str, str, float]],
    *,
    against: Matrix | None = None,
    differs: Callable[[Cell, Cell], bool] | None = None,
) -> Panel:
    unlike = differs or _differ
    squares = []
    wrong = []
    for down, row in enumerate(matrix):
        for across, cell in enumerate(row):
            text, ink, shade = look(cell)
            other = _at(against, down, across) if against is not None else cell
            is_wrong = against is not None and unlike(other, cell)
            if is_wrong:
                wrong.append((down, across))
            squares.append(
                Square(
                    x=LEFT + SIZE * across,
                    y=TOP + HEIGHT * down,
                    text=text,
                    ink=ink,
                    shade=round(min(1.0, shade), 3),
                    hidden=ink == "weight" and _masked(cell),
                    wrong=is_wrong,
                )
            )
    rows, columns = one_line(example.rows, most=40), one_line(example.columns, most=40)
    tall, wide = len(matrix), max(map(len, matrix), default=0)
    said = f"{title}: {tall} by {wide}" + (f", {rows} by {columns}" if rows else f", {columns}")
    if against is not None:
        first = f", the first at {rows or 'row'} {wrong[0][0]}, {columns} {wrong[0][1]}" if wrong else ""
        said += f"; {len(wrong)} of {len(squares)} cells differ from the contract{first}"
    return Panel(
        title=title, rows=rows, columns=columns, squares=tuple(squares), down=tall, across=wide, summary=f"{said}."
    )


def _weight(cell: Cell) -> tuple[str, str, float]:
    if _masked(cell):
        return "0", "weight", 0.0
    return _short(cell), "weight", 0.06 + 0.94 * (cell or 0.0)


def _share(cell: Cell) -> tuple[str, str, float]:
    if cell is None:
        return "n/f", "weight", 0.0
    return (f"{cell:.0%}" if not _masked(cell) else "none"), "weight", 0.06 + 0.6 * cell


def _value(largest: float) -> Callable[[Cell], tuple[str, str, float]]:
    def look(cell: Cell) -> tuple[str, str, float]:
        return _short(cell), _sign(cell), 0.45 * abs(cell or 0.0) / (largest or 1.0)

    return look


def _difference(largest: float) -> Callable[[Cell], tuple[str, str, float]]:
    def look(cell: Cell) -> tuple[str, str, float]:
        if cell is not None and abs(cell) <= SAME:
            return "·", "up", 0.0
        return _short(cell, "+"), _sign(cell), 0.1 + 0.6 * abs(cell or 0.0) / (largest or 1.0)

    return look


def _place_of() -> Callable[[Cell], tuple[str, str, float]]:
    def look(cell: Cell) -> tuple[str, str, float]:
        if cell is None or cell != int(cell):
            return "mixed", "weight", 0.0
        token, head, column = int(cell) // 100, int(cell) // 10 % 10, int(cell) % 10
        return f"{token} {head}·{column}", f"head{head % 4}", 0.4

    return look


def _short(cell: Cell, sign: str = "") -> str:
    if cell is None:
        return "n/f"
    if abs(cell) >= 1000 or 0 < abs(cell) < 0.005:
        return f"{cell:{sign}.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{cell:{sign}.2f}" if abs(cell) < 100 else f"{cell:{sign}.0f}"


def _sign(cell: Cell) -> str:
    return "down" if cell is not None and cell < 0 else "up"


def _masked(cell: Cell) -> bool:
    return cell is not None and abs(cell) <= NOTHING


def _masked_otherwise(one: Cell, other: Cell) -> bool:
    return _masked(one) != _masked(other)


def _differ(right: Cell, left: Cell) -> bool:
    if right is None or left is None:
        return right is not left
    return abs(left - right) > SAME * (1 + abs(right))


def _at(matrix: Matrix, down: int, across: int) -> Cell:
    return matrix[down][across] if down < len(matrix) and across < len(matrix[down]) else None


def _cut(matrix: Matrix) -> Matrix:
    return [row[:MOST] for row in matrix[:MOST]]


def _flat(matrix: Matrix) -> list[Cell]:
    return [cell for row in matrix for cell in row]


def _same_shape(one: Matrix, other: Matrix) -> bool:
    return [len(row) for row in one] == [len(row) for row in other]
