"""One TOML table, read strictly: checked values are handed out, and what was not asked for is an error. Names file and key."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from attn_kata.errors import KataFileError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read(file: Path) -> Table:
    """The outermost table of a file. Raises KataFileError."""
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise KataFileError(f"{file} cannot be read: {problem}.") from problem
    return Table(raw, file, "")


class Table:
    """A table that knows its file and its place in it."""

    def __init__(self, raw: dict[str, Any], file: Path, place: str) -> None:
        self._raw, self._file, self._place = raw, file, place
        self._asked: set[str] = set()

    def wrong(self, key: str, why: str) -> KataFileError:
        """The error for a key of this table: `…/interview.toml: 'question[2].answer' is empty.`"""
        return KataFileError(f"{self._file}: '{self._place}{key}' {why}.")

    def nothing_else(self) -> None:
        """Raises KataFileError for a key that was never asked for."""
        for key in self._raw:
            if key not in self._asked:
                raise self.wrong(key, "is an unknown key")

    def has(self, key: str) -> bool:
        return key in self._raw

    def text(self, key: str) -> str:
        value = self._value(key)
        if not isinstance(value, str):
            raise self.wrong(key, f"must be text, not {type(value).__name__}")
        if not value.strip():
            raise self.wrong(key, "is empty")
        return value.strip("\n").rstrip()

    def truth(self, key: str) -> bool:
        value = self._value(key)
        if not isinstance(value, bool):
            raise self.wrong(key, f"must be true or false, not {value!r}")
        return value

    def number(self, key: str, *, least: float = float("-inf")) -> float:
        value = self._value(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= least:
            raise self.wrong(key, "must be a number" if least == float("-inf") else f"must be a number of {least:g} or more")
        return value

    def texts(self, key: str, *, least: int) -> tuple[str, ...]:
        value = self._value(key)
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            raise self.wrong(key, "must be a list of texts, none of them empty")
        if len(value) < least:
            raise self.wrong(key, f"must have {least} or more, not {len(value)}")
        return tuple(item.strip() for item in value)

    def whole_numbers(self, key: str) -> tuple[int, ...]:
        value = self._value(key)
        if not isinstance(value, list) or not value or not all(type(item) is int and item > 0 for item in value):
            raise self.wrong(key, "must be a list of whole numbers of 1 or more")
        return tuple(value)

    def nested_numbers(self, key: str) -> list[Any]:
        """Numbers or truths in lists in lists."""
        value = self._value(key)
        if not isinstance(value, list) or not _all_numbers(value):
            raise self.wrong(key, "must be lists of numbers")
        return value

    def names(self) -> tuple[str, ...]:
        """Every key, for a table whose keys are free."""
        return tuple(self._raw)

    def table(self, key: str) -> Table:
        """A table within this one; an empty one where there is none."""
        self._asked.add(key)
        value = self._raw.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "must be a table")
        return Table(value, self._file, f"{self._place}{key}.")

    def tables(self, key: str, *, least: int) -> list[Table]:
        value = self._value(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, f"must be [[{self._place}{key}]] tables")
        if len(value) < least:
            raise self.wrong(key, f"must be there {least} times or more, not {len(value)}")
        return [Table(item, self._file, f"{self._place}{key}[{number}].") for number, item in enumerate(value, 1)]

    def _value(self, key: str) -> object:
        self._asked.add(key)
        if key not in self._raw:
            raise self.wrong(key, "is missing")
        return self._raw[key]


def _all_numbers(value: list[Any]) -> bool:
    return bool(value) and all(_all_numbers(item) if isinstance(item, list) else isinstance(item, (int, float)) for item in value)
