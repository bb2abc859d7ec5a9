"""The files in a folder or in a zip, as one kind of entry. Nothing is unpacked, and nothing outside is read."""

from __future__ import annotations

import contextlib
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from attn_kata import files
from attn_kata.errors import UsageError, why

MOST_ENTRIES = 500_000
MOST_DEPTH = 20
IGNORED = frozenset({"__pycache__", "__MACOSX", "node_modules", "venv"})  # and what begins with a dot
ENCRYPTED = 1  # the bit in a zip's flags
MARK = "class.db"  # a folder with this file holds the results of a class, and no submissions


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file. `parts` is its path from the top. `problem` says in half a sentence why it must not be read, or is "".

    `read(most)` returns at most `most` + 1 bytes, and raises UsageError.
    """

    parts: tuple[str, ...]
    read: Callable[[int], bytes]
    problem: str = ""

    @property
    def name(self) -> str:
        """The path, safe to print."""
        return files.printable("/".join(self.parts))

    @property
    def suffix(self) -> str:
        return os.path.splitext(self.parts[-1])[1].lower()


@dataclass(frozen=True, kw_only=True)
class Tree:
    """All entries in the order of their names, every folder, and the folders that are git repositories."""

    entries: list[Entry]
    folders: set[tuple[str, ...]]
    repositories: set[tuple[str, ...]]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Tree]:
    """The tree of a folder or a zip, which can be read inside of the block. Raises UsageError."""
    try:
        if path.is_dir():
            yield _of_folder(path)
            return
        if not path.exists():
            raise UsageError(
                f"There is no folder or zip '{files.shown(path)}'.",
                next_step="Give one with a file or a folder for each student: attn-kata class SUBMISSIONS --kata KATA",
            )
        with zipfile.ZipFile(path) as archive:
            yield _of_zip(archive)
    except zipfile.BadZipFile as problem:
        raise UsageError(
            f"'{files.shown(path)}' is neither a folder nor a zip.",
            next_step="To grade one file: attn-kata grade FILE --untrusted",
        ) from problem
    except OSError as problem:
        raise UsageError(f"'{files.shown(path)}' cannot be read: {why(problem)}.") from problem


def _is_ignored(name: str) -> bool:
    return name.startswith(".") or name in IGNORED


def _too_many() -> UsageError:
    return UsageError(f"There are more than {MOST_ENTRIES:,} files. Is this the folder with the submissions?")


# ----------------------------------------------------------------------------------------------------------- a folder


def _of_folder(root: Path) -> Tree:
    inside = os.path.realpath(root)
    tree = Tree(entries=[], folders=set(), repositories=set())
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        parts = waiting.pop()
        try:
            with os.scandir(os.path.join(root, *parts)) as found:
                here = sorted(found, key=lambda entry: entry.name)
        except OSError as problem:
            if not parts:
                raise
            tree.entries.append(Entry(parts=parts, read=_nothing, problem=f"cannot be read ({why(problem)})"))
            continue
        if any(entry.name == MARK and entry.is_file() for entry in here):
            tree.folders.discard(parts)
            continue
        for entry in here:
            path = (*parts, entry.name)
            if entry.name == ".git":
                tree.repositories.add(parts)
            if _is_ignored(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                tree.folders.add(path)
                if len(path) < MOST_DEPTH:
                    waiting.append(path)
                continue
            tree.entries.append(_of_file(entry, path, inside))
            if len(tree.entries) > MOST_ENTRIES:
                raise _too_many()
    tree.entries.sort(key=lambda entry: entry.parts)
    return tree


def _of_file(entry: os.DirEntry[str], parts: tuple[str, ...], inside: str) -> Entry:
    if entry.is_symlink():
        target = os.path.realpath(entry.path)
        if os.path.commonpath([target, inside]) != inside:
            return Entry(parts=parts, read=_nothing, problem="is a link to a place outside of the folder")
        if os.path.isdir(target):
            return Entry(parts=parts, read=_nothing, problem="is a link to a folder")
    path, name = Path(entry.path), files.printable("/".join(parts))

    def read(most: int) -> bytes:
        # A link that was changed since then is read only if it still stays inside.
        if os.path.commonpath([os.path.realpath(path), inside]) != inside:
            raise UsageError(f"'{name}' is a link to a place outside of the folder.")
        return files.read(path, most=most, name=name)

    return Entry(parts=parts, read=read)


def _nothing(most: int) -> bytes:
    return b""


# -------------------------------------------------------------------------------------------------------------- a zip


def _of_zip(archive: zipfile.ZipFile) -> Tree:
    tree = Tree(entries=[], folders=set(), repositories=set())
    infos = archive.infolist()
    if len(infos) > MOST_ENTRIES:
        raise _too_many()
    for info in infos:
        name = info.filename.replace("\\", "/")
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        if not parts:
            continue
        if ".git" in parts:
            tree.repositories.add(parts[: parts.index(".git")])
        if any(map(_is_ignored, (part for part in parts if part != ".."))):
            continue
        outside = ".." in parts or name.startswith("/") or parts[0].endswith(":")
        if info.is_dir():
            if not outside:
                tree.folders.update(parts[:depth] for depth in range(1, len(parts) + 1))
            continue
        problem = "lies outside of the zip" if outside else ""
        if stat.S_ISLNK(info.external_attr >> 16):
            problem = "is a symbolic link, which no zip of submissions needs"
        if outside:  # it must not become a student of the name ".."
            parts = ("/".join(parts),)
        tree.folders.update(parts[:depth] for depth in range(1, len(parts)))
        tree.entries.append(Entry(parts=parts, read=_reader(archive, info), problem=problem))
    tree.entries.sort(key=lambda entry: entry.parts)
    return tree


def _reader(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[int], bytes]:
    def read(most: int) -> bytes:
        name = files.printable(info.filename)
        if info.flag_bits & ENCRYPTED:
            raise UsageError(f"'{name}' is encrypted. Unpack the zip, and give the folder.")
        if info.file_size > most:
            raise UsageError(f"'{name}' has {info.file_size:,} bytes; at most {most:,} are read.")
        try:
            with archive.open(info) as file:
                data = file.read(most + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as problem:
            raise UsageError(f"'{name}' cannot be unpacked: {problem}.") from problem
        if len(data) > most:  # the zip lied about its size
            raise UsageError(f"'{name}' unpacks to more than {most:,} bytes.")
        return data

    return read
