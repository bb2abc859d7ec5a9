"""Makes text from an attempt safe to print: without characters that move the cursor or mislead the reader."""

from __future__ import annotations

import re

TAB = " " * 4
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)")  # terminal commands, whole
# Text that a GitHub or Azure log reads as a command, at any place in a line.
_COMMANDS = re.compile(
    r":(?=:(?:error|warning|notice|debug|group|endgroup|echo|stop-commands|set-output|set-env|save-state|add-path|add-mask"
    r"|add-matcher|remove-matcher)\b)|#(?=#(?:\[|vso\[))"
)
_SURROGATES = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    """`text` without unprintable characters and log commands. Lines stay; other white space becomes a space."""
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\t", TAB).split("\n")
    return _COMMANDS.sub(r"\g<0> ", "\n".join("".join(map(_printable, line)) for line in lines))


def one_line(text: str, *, most: int = 500) -> str:
    """`text` on one line of at most `most` characters."""
    line = " ".join(plain(text[: 4 * most]).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def capped(text: str, *, lines: int, characters: int) -> tuple[list[str], int]:
    """The first `lines` lines of `text`, at most `characters` in all, made plain, and the number of lines left out.

    A shortened line ends in "…".
    """
    every = text.rstrip().split("\n") if text.strip() else []
    kept: list[str] = []
    for line in every[:lines]:
        room = characters - sum(map(len, kept))
        if room <= 0:
            break
        kept.append(plain(line[:room]).rstrip() + ("…" if len(line) > room else ""))
    return kept, len(every) - len(kept)


def unicode(text: str) -> str:
    """`text` with a replacement character for each invalid one."""
    return _SURROGATES.sub("\ufffd", text)


def _printable(letter: str) -> str:
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else ""
