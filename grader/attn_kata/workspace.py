"""The candidate's files: created once, never overwritten; found again by kata, by name or by header.

A file is Python or a notebook. `-` is standard input.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from attn_kata import catalog, definitions, notebooks, sources, stub
from attn_kata.catalog import Kata
from attn_kata.errors import UsageError, why
from attn_kata.files import printable as printable
from attn_kata.files import read as read
from attn_kata.files import shown as shown
from attn_kata.history import History, Progress
from attn_kata.sources import Source

# What the source of a file says of its kata: a slug and the reason in a sentence, or None. It gets the source and the kata
# that the file is called after, or None.
Nearest = Callable[[bytes, "str | None"], "tuple[str, str] | None"]

STANDARD_INPUT = "-"


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A file to grade. `name` is its path as typed, or relative to the current folder.

    `told_by` says what told its kata, in a sentence, where that was neither the command nor the file's name or header.
    `piped` is what came from standard input, None for a file.
    """

    kata: Kata
    path: Path
    name: str
    told_by: str = ""
    piped: Source | None = None

    def source(self, *, alone: bool = False) -> Source:
        """What is graded, as it is now: the file, unless `alone` with what it imports from beside it. Raises UsageError."""
        if self.piped or alone:
            return notebooks.of_kata(self.piped or sources.read(self.path), self.kata)

        from attn_kata import local_imports  # only here: `start` does not need it

        return notebooks.of_kata(local_imports.read(self.path), self.kata)


class StubExists(UsageError):
    """`start` found a file of that name and did not change it."""

    def __init__(self, kata: Kata, path: Path) -> None:
        super().__init__(
            f"'{shown(path)}' exists already and was not changed; it is the current kata now.",
            next_step=f"Continue: attn-kata grade. Start again and keep the old file: attn-kata reset {kata.slug}",
        )


def start(kata: Kata, folder: Path, level: stub.Level, history: History) -> Path:
    """Write the stub into `folder`, create the folder if needed, and make it the current kata. Raises StubExists."""
    path = _absolute(folder) / f"{kata.slug}.py"
    source = stub.render(kata, level)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _create(path, source.encode())
    except FileExistsError:
        if not path.is_file():
            raise UsageError(f"'{shown(path)}' exists and is not a file.", next_step="Try --dir DIR") from None
        history.make_current(kata.slug, path)
        raise StubExists(kata, path) from None
    except OSError as problem:
        raise UsageError(f"'{shown(path)}' cannot be written: {why(problem)}.", next_step="Try --dir DIR") from problem
    history.started(kata.slug, path, level)
    return path


def start_notebook(katas: Sequence[Kata], folder: Path, level: stub.Level, history: History) -> Path:
    """Write a notebook with these katas into `folder`. The first is the current kata. Raises UsageError if it exists."""
    path = _absolute(folder) / notebooks.NAME
    content = notebooks.render(katas, level)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _create(path, content.encode())
    except FileExistsError:
        raise UsageError(
            f"'{shown(path)}' exists already and was not changed.",
            next_step="Open it in Jupyter, or write the new one into another folder: --dir DIR",
        ) from None
    except OSError as problem:
        raise UsageError(f"'{shown(path)}' cannot be written: {why(problem)}.", next_step="Try --dir DIR") from problem
    for kata in reversed(katas):
        history.started(kata.slug, path, level)
    return path


def reset(kata: Kata, level: stub.Level | None, history: History, *, named: bool = True) -> tuple[Path, Path | None]:
    """Replace the kata's file by a new stub, and return it with the numbered backup of the old one.

    Without `level`, the new stub has the old level. At every moment, the old text is in at least one of the files.
    Where nobody `named` the kata, a file that `start` did not write stays as it is. Raises UsageError.
    """
    path = locate(kata, history)
    if path is None:
        raise UsageError(f"There is no attempt at {kata.slug} yet.", next_step=f"attn-kata start {kata.slug}")
    if path.suffix == sources.SUFFIX:
        raise UsageError(
            f"Your attempt at {kata.slug} is in the notebook '{shown(path)}', which reset does not change.",
            next_step=f"In a new cell of the notebook: %kata_start {kata.slug}",
        )
    ours = history.wrote(kata.slug, path)
    path = path.resolve()
    try:
        old = read(path) if path.exists() else None
        if not (named or ours or old is None or stub.header(old)[0]):
            raise UsageError(
                f"'{shown(path)}' was not written by attn-kata start, so it was not replaced.",
                next_step=f"To start again and keep it under a number: attn-kata reset {kata.slug}",
            )
        level = level or stub.header(old or b"")[1] or "standard"
        source = stub.render(kata, level).encode()  # before anything is written: it may fail
        backup = _back_up(path, old) if old is not None else None
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        _create(fresh, source)
        try:
            if old is not None:
                fresh.chmod(stat.S_IMODE(path.stat().st_mode))
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as problem:
        raise UsageError(f"'{shown(path)}' cannot be written: {why(problem)}. Nothing was changed.") from problem
    history.started(kata.slug, path, level)
    return path, backup


def resolve(
    argument: str | None,
    kata_name: str | None,
    history: History,
    nearest: Nearest = lambda *_: None,
) -> Attempt:
    """The attempt for `KATA | FILE`: an existing path is a file, `-` standard input, anything else a kata.

    None is the current kata.

    A file's kata is `kata_name` if given, else from the file's name, else from its header, else from what it defines, else
    what `nearest` says of the source: a slug and the reason in a sentence.
    Raises UsageError.
    """
    named = catalog.find(kata_name) if kata_name else None
    if argument is None:
        kata = named or current(history)
    elif argument == STANDARD_INPUT:
        path, piped = Path(argument), _standard_input()
        kata, told_by = (named, "") if named else _kata_of(path, piped, nearest)
        return Attempt(kata=kata, path=_absolute(path), name=argument, told_by=told_by, piped=piped)
    elif _is_file(argument):
        path = Path(argument)
        kata, told_by = (named, "") if named else _kata_of(path, sources.read(path), _with_imports(path, nearest))
        return Attempt(kata=kata, path=_absolute(path), name=argument, told_by=told_by)
    else:
        kata = catalog.find(argument)
        if named and named.slug != kata.slug:
            raise UsageError(f"'{argument}' is a kata, but --kata is '{kata_name}'.", next_step="Give one of the two")

    found = locate(kata, history)
    if found is None:
        raise UsageError(f"There is no attempt at {kata.slug} yet.", next_step=f"attn-kata start {kata.slug}")
    if not found.exists():
        raise UsageError(
            f"Your attempt at {kata.slug} is no longer at '{shown(found)}'.",
            next_step=f"attn-kata grade FILE --kata {kata.slug}, or for a new stub: attn-kata start {kata.slug}",
        )
    return Attempt(kata=kata, path=found, name=shown(found))


def _with_imports(path: Path, nearest: Nearest) -> Nearest:
    """`nearest`, of a file with what it imports from files beside it."""
    from attn_kata import local_imports

    return lambda _, named: nearest(local_imports.read(path).code, named)


def may_see_reference(kata: Kata, history: History, *, give_up: bool) -> bool:
    """Whether the reference may be shown: after a pass, or when the candidate gives up. It is recorded that it is shown."""
    passed = history.progress().get(kata.slug, Progress()).passed_at is not None
    if passed or give_up:
        history.shown(kata.slug, given_up=not passed)
    return passed or give_up


def current(history: History) -> Kata:
    """The kata of a command without an argument. Raises UsageError if nothing was started."""
    known = history.current()
    if known is None:
        here = [slug for slug in catalog.slugs() if Path(f"{slug}.py").is_file()]
        if len(here) == 1:  # without a history, the only kata file here is the one
            return catalog.find(here[0])
        raise UsageError(
            "You have not started a kata yet.", next_step="attn-kata list, then for example: attn-kata start sdpa"
        )
    return catalog.find(known.kata)


def locate(kata: Kata, history: History) -> Path | None:
    """The path of the kata's attempt: the current one, else the file of its name in this folder, else the last start."""
    known = history.current()
    if known is not None and known.kata == kata.slug and known.path.exists():
        return known.path
    here = _absolute(Path(f"{kata.slug}.py"))
    if here.is_file():
        return here
    return history.path_of(kata.slug) or (known.path if known is not None and known.kata == kata.slug else None)


def _is_file(argument: str) -> bool:
    """Whether `argument` is an existing path. Raises UsageError if it looks like a path and does not exist."""
    path = Path(argument)
    try:
        there = os.path.lexists(path)
    except ValueError:  # a null byte
        there = False
    if there:
        return not (path.is_dir() and catalog.normal(argument) in catalog.slugs())
    if not (path.suffix or os.sep in argument):  # no name of a kata has either
        return False

    import difflib  # only here: a correct name does not need it

    try:
        beside = [name.name for name in path.parent.iterdir() if name.suffix in (".py", sources.SUFFIX)]
    except (OSError, ValueError):
        beside = []
    near = difflib.get_close_matches(path.name, beside, n=1)
    meant = f" Did you mean '{printable(str(path.with_name(near[0])))}'?" if near else ""
    kata = catalog.normal(path.stem)
    begin = f"attn-kata start {kata}" if kata in catalog.slugs() else "attn-kata start KATA"
    raise UsageError(f"There is no file '{printable(argument)}'.{meant}", next_step=f"For a new stub: {begin}")


def _standard_input() -> Source:
    """Standard input up to its end. Raises UsageError."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "'-' reads your attempt from standard input, and nothing is sent there.",
            next_step="attn-kata grade - --kata KATA < FILE",
        )
    try:
        return sources.of_bytes(sys.stdin.buffer.read(sources.MOST_NOTEBOOK_BYTES + 1), STANDARD_INPUT)
    except OSError as problem:
        raise UsageError(f"Standard input cannot be read: {why(problem)}.") from problem


def _kata_of(path: Path, attempt: Source, nearest: Nearest) -> tuple[Kata, str]:
    """The kata of a file, and a sentence where what it defines told it. Raises UsageError for none and for several."""
    source = attempt.code
    name = printable(str(path))
    known = catalog.slugs()
    header = "" if attempt.cells else stub.header(source)[0]  # a notebook may have the stubs of several katas
    for said in (path.stem, header or ""):
        if catalog.normal(said) in known:
            rather = None if header else nearest(source, catalog.normal(said))
            return (catalog.find(rather[0]), rather[1]) if rather is not None else (catalog.find(said), "")
    found = definitions.katas(source)
    told = nearest(source, None)
    if told is not None and (len(found) != 1 or told[0] != found[0].slug):
        return catalog.find(told[0]), told[1]
    if len(found) == 1:
        entries = [entry for entry in found[0].entries if entry in definitions.names(source)]
        return found[0], f"'{name}' defines {' and '.join(entries)}, so it is graded as {found[0].slug}."
    if found:
        *others, last = (kata.slug for kata in found)
        slugs = f"{', '.join(others)} and {last}"
        raise UsageError(
            f"'{name}' defines what several katas ask for: {slugs}.",
            next_step=f"attn-kata grade {shlex.quote(name)} --kata {found[-1].slug}",
        )
    broken = definitions.syntax_error(source)
    if broken is not None:
        raise UsageError(
            f"'{name}' is not valid Python, so it cannot be told which kata it is: {printable(broken)}.",
            next_step=f"Mend it, then attn-kata grade {shlex.quote(name)}",
        )
    defined = ", ".join(sorted(definitions.names(source))[:5])
    has = f"It defines {printable(defined)}." if defined else "It defines no class and no function."
    if framework := definitions.other_framework(definitions.imported(source)):
        has += f" It imports {framework} and not torch: only PyTorch can be graded."
    raise UsageError(
        f"Nothing in '{name}' looks like an attention, and its name does not say which kata it is. {has}",
        next_step=f"attn-kata grade {shlex.quote(name)} --kata KATA (the katas: attn-kata list)",
    )


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except OSError as problem:
        raise UsageError(
            f"The current folder cannot be used: {why(problem)}.", next_step="cd to another one"
        ) from problem


def _create(path: Path, content: bytes) -> None:
    """A new file with `content`, or none at all. Raises FileExistsError, also for a dangling link."""
    with path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _back_up(path: Path, content: bytes) -> Path:
    for number in range(1, 10_000):
        backup = path.with_name(f"{path.stem}.bak{number}{path.suffix}")
        try:
            _create(backup, content)
        except FileExistsError:
            continue
        return backup
    raise UsageError(f"'{shown(path)}' has too many backups in its folder.", next_step="Remove some of them")
