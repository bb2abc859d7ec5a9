"""The contract of a kata: `katas/<slug>/prompt.md`, the one place that says what is asked.

The first line is `# ` and the kata's title. The rest is Markdown that reads well as plain text too, because the docstring of
the stub shows it as it is: lines of at most 100 characters, no backslash, no three double quotes. What is indented by four
spaces or more is shown line by line; other paragraphs may be wrapped anew.

An interviewer does not tell everything. What is left out of an interview stands between marks, each alone on its line:

    <!-- silent: what True in the mask means -->
    Mask: True = may attend.
    <!-- /silent -->

The name says which point is left open; a question in `interview.toml` settles it. `<!-- silent -->` without a name leaves
out what nobody has to ask for. The same name may stand at several places. Marks do not nest, and are shown to nobody.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attn_kata.errors import KataFileError

LONGEST_LINE = 100
LONGEST_TOLD = 78  # a session is written for 80 columns

_OPEN = re.compile(r"<!-- silent(?:: (\S.*?))? -->")
_CLOSE = "<!-- /silent -->"
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_VERBATIM = " " * 4  # what is indented so far is shown line by line
_BOUND = re.compile(
    r"`[^`]*`| \d+\.(?= |$)"
)  # not broken: code, and a number that would begin a list at the start of a line


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What a kata asks. `text` is the contract in full, `told` what an interviewer tells of it, both without the title."""

    title: str
    text: str
    told: str  # lines of at most 78 characters
    silent: tuple[str, ...]  # the points that an interview leaves open, in their order


def load(file: Path) -> Contract:
    """The contract in `file`. Raises KataFileError, which names the file and the line."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise KataFileError(f"{file} cannot be read: {problem}.") from problem
    if not lines or not lines[0].startswith("# ") or not lines[0][2:].strip():
        raise KataFileError(f"{file}, line 1: must be the title, such as '# Softmax'.")

    text: list[str] = []
    told: list[str] = []
    silent: list[str] = []
    opened = 0  # the line of the mark that is open, 0 where none is
    for number, line in enumerate(lines[1:], start=2):
        wrong = _wrong(line)
        mark = _OPEN.fullmatch(line)
        if mark and opened:
            wrong = f"a mark is opened inside the one of line {opened}"
        elif line == _CLOSE and not opened:
            wrong = "closes a mark that was not opened"
        elif "<!--" in line and not mark and line != _CLOSE:
            wrong = f"'{line.strip()}' is no mark: write '<!-- silent: POINT -->', '<!-- silent -->' or '{_CLOSE}' on its line"
        elif line.startswith(_VERBATIM) and not opened and len(line) > LONGEST_TOLD:
            wrong = (
                f"is indented and told in the interview, so it has at most {LONGEST_TOLD} characters, not {len(line)}"
            )
        if wrong:
            raise KataFileError(f"{file}, line {number}: {wrong}.")
        if mark:
            opened = number
            silent += [mark[1]] if mark[1] and mark[1] not in silent else []
        elif line == _CLOSE:
            opened = 0
        else:
            text.append(line)
            told += [] if opened else [line]
    if opened:
        raise KataFileError(f"{file}, line {opened}: the mark is not closed by '{_CLOSE}'.")
    contract = Contract(
        title=lines[0][2:].strip(),
        text=_tidy(text),
        told="\n".join(_wrapped(_tidy(told))).rstrip("\n"),
        silent=tuple(silent),
    )
    if not contract.told:
        raise KataFileError(f"{file}: nothing is left that an interviewer could tell.")
    return contract


def _wrong(line: str) -> str:
    if len(line) > LONGEST_LINE:
        return f"has {len(line)} characters, and a line of the contract at most {LONGEST_LINE}"
    if "\\" in line or '"""' in line or line.endswith('"'):
        return "goes into a docstring: no backslash, no three double quotes, no double quote at its end"
    return ""


def _tidy(lines: list[str]) -> str:
    """One blank line where several are left in the place of a mark."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _wrapped(text: str) -> Iterator[str]:
    """The lines of `text`, with paragraphs and items of lists wrapped for the interview."""
    paragraph: list[str] = []
    for line in [*text.split("\n"), ""]:
        alone = not line or line.startswith((_VERBATIM, "#"))
        if paragraph and (alone or _ITEM.match(line)):
            yield from _filled(" ".join(part.strip() for part in paragraph))
            paragraph = []
        if alone:
            yield line
        else:
            paragraph.append(line)


def _filled(paragraph: str) -> Iterator[str]:
    item = _ITEM.match(paragraph)
    lines = textwrap.wrap(
        _BOUND.sub(lambda bound: bound[0].replace(" ", "\0"), paragraph),
        LONGEST_TOLD,
        subsequent_indent=" " * len(item[0]) if item else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return (line.replace("\0", " ") for line in lines)
