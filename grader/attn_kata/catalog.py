"""The katas as their folders describe them, in `katas/<slug>/kata.toml`, read strictly. Folders are discovered.

The format of `kata.toml`. Every key is required; an error names file and key:

    title = "Multi-head attention"   # what `list` and the stub call it; as in the first line of prompt.md
    level = 3                        # 1 and up: how hard it is
    minutes = 35                     # what an interview would give for it
    summary = "..."                  # one line, at most 60 characters, for `list`
    entries = ["MultiHeadAttention"] # the names that the hidden tests call
    hints = ["...", "...", "..."]    # three or more, from a nudge to nearly there; the last is still not the code

    group = "Heads"                  # optional: its heading in `list`, instead of its level
    prerequisites = ["sdpa"]         # optional: katas to pass before; whoever passed this one needs them no more
    shapes = ["output_shape"]        # optional: properties that an interview shows

    [returns]                        # optional: the parts of a result that is a tuple, by entry point
    attend = ["out", "lse"]          # two tensors
    step = ["out", "opaque cache"]   # a tensor, and a value of the attempt's own, which comes back in a later call

    [hint_for]                       # optional: the hint, by number, that is about a mistake
    scale = 3                        # about every mistake whose id begins with "scale."
    "mask.inverted" = 2              # about this one, rather than what `mask` says

What the kata asks is in `prompt.md` beside it (contract.py), its stub in `stub.py.j2` (stub.py), its interview in
`interview.toml` (interview/content.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from attn_kata.errors import KataFileError, UsageError
from attn_kata.resources import katas_folder, solutions_folder
from attn_kata.tables import Table

SLUG = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@dataclass(frozen=True, kw_only=True)
class Kata:
    """One kata, as `kata.toml` says."""

    slug: str
    title: str
    level: int
    minutes: int
    summary: str
    entries: tuple[str, ...]
    hints: tuple[str, ...]
    group: str
    prerequisites: tuple[str, ...]
    shapes: tuple[str, ...]
    returns: dict[str, tuple[str, ...]]  # by entry point, if its result is a tuple
    hint_numbers: dict[str, int]  # by the id of a mistake, or by its family
    folder: Path

    @property
    def prompt(self) -> Path:
        """`prompt.md`: the contract."""
        return self.folder / "prompt.md"

    def hint_for(self, mistake: str) -> int | None:
        """The number of the hint about the mistake with this id."""
        return self.hint_numbers.get(mistake, self.hint_numbers.get(mistake.partition(".")[0]))

    @property
    def solution(self) -> Path:
        """The reference, `solutions/<slug>.py`."""
        return solutions_folder() / f"{self.slug}.py"


def slugs() -> list[str]:
    """Every kata's slug, in alphabetical order."""
    return sorted(toml.parent.name for toml in katas_folder().glob("*/kata.toml"))


def katas() -> list[Kata]:
    """Every kata, in the order of `list`: by level, then the shorter first. Raises KataFileError."""
    every = (load(katas_folder() / slug) for slug in slugs())
    return sorted(every, key=lambda kata: (kata.level, kata.minutes, kata.slug))


def normal(name: str) -> str:
    """`Cross-Attention` → `cross_attention`."""
    return name.strip().lower().replace("-", "_")


def find(name: str) -> Kata:
    """The kata called `name`, with - or _ and in any case. Raises UsageError with the nearest name."""
    known = slugs()
    if normal(name) in known:
        return load(katas_folder() / normal(name))

    raise UsageError(
        f"There is no kata '{name}'.{_meant(normal(name), known)}", next_step="See them all: attn-kata list"
    )


def properties(kata: Kata) -> list[str]:
    """The names of the kata's properties, in the order of its hidden tests."""
    hidden_tests = (kata.folder / f"test_{kata.slug}.py").read_text(encoding="utf-8")
    return re.findall(r"^(?:def )?test_(\w+)(?:\(| = )", hidden_tests, re.MULTILINE)


def check_property(kata: Kata, name: str) -> None:
    """Raises UsageError with the nearest name where the kata has no property `name`."""
    known = properties(kata)
    if name not in known:
        raise UsageError(
            f"{kata.slug} has no property '{name}'.{_meant(name, known)}",
            next_step=f"See them all: attn-kata grade --kata {kata.slug}",
        )


def _meant(name: str, known: list[str]) -> str:
    import difflib  # only here: a right name should not wait for it

    swapped = [one for one in known if sorted(one) == sorted(name)]  # mah: mha, and not mla
    near = swapped or difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" Did you mean '{near[0]}'?" if near else ""


def load(folder: Path) -> Kata:
    """The kata in `folder`. Raises KataFileError for a key that is unknown, missing or of the wrong type."""
    file = folder / "kata.toml"
    if not SLUG.fullmatch(folder.name):
        raise KataFileError(f"{file}: the folder '{folder.name}' is not a snake_case slug.")
    table = Table.of_file(file)
    level = table.positive("level")
    kata = Kata(
        slug=folder.name,
        title=table.text("title"),
        level=level,
        minutes=table.positive("minutes"),
        summary=table.text("summary"),
        entries=table.identifiers("entries"),
        hints=table.texts("hints", at_least=3),
        group=table.text("group", default=f"Level {level}"),
        prerequisites=table.identifiers("prerequisites") if table.has("prerequisites") else (),
        shapes=table.identifiers("shapes") if table.has("shapes") else ("output_shape",),
        returns=_returns(table.table("returns"), table) if table.has("returns") else {},
        hint_numbers=_hint_numbers(table.table("hint_for")),
        folder=folder,
    )
    table.nothing_else()
    for mistake, number in kata.hint_numbers.items():
        if number > len(kata.hints):
            raise table.wrong(
                f"hint_for.{mistake}", f"must be the number of a hint: there are {len(kata.hints)}, not {number}"
            )
    if "\\" in kata.title or '"' in kata.title or "\n" in kata.title:
        raise table.wrong("title", "goes into a docstring: one line, no backslash, no double quote")
    if "\n" in kata.summary or len(kata.summary) > 60:
        raise table.wrong("summary", "must be one line of at most 60 characters")
    return kata


def _returns(parts: Table, whole: Table) -> dict[str, tuple[str, ...]]:
    returns = {entry: parts.texts(entry, at_least=1) for entry in parts.names()}
    for entry, names in returns.items():
        if entry not in whole.identifiers("entries"):
            raise whole.wrong(f"returns.{entry}", "is no entry point: 'entries' has their names")
        if names[0].startswith("opaque ") or not all(name.removeprefix("opaque ").isidentifier() for name in names):
            raise whole.wrong(f"returns.{entry}", "must have names, with 'opaque ' before some; the first is a tensor")
    return returns


def _hint_numbers(table: Table) -> dict[str, int]:
    return {mistake: table.positive(mistake) for mistake in table.names()}
