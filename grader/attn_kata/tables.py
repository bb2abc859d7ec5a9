"""TOML files read strictly: a key that is unknown, missing or of the wrong type is an error that names file and key."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Any

from attn_kata.errors import KataFileError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_REQUIRED = object()


class Table:
    """One TOML table that knows its file and its place, and hands out checked values.

    All its methods raise KataFileError. What no method asked for is unknown: `nothing_else` says so.
    """

    def __init__(self, raw: dict[str, Any], file: Path, place: str = "") -> None:
        self._raw = raw
        self._file = file
        self._place = place
        self._asked: set[str] = set()

    @classmethod
    def of_file(cls, file: Path) -> Table:
        """The whole of `file`."""
        try:
            return cls(tomllib.loads(file.read_text(encoding="utf-8")), file)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
            raise KataFileError(f"{file} cannot be read: {problem}.") from problem

    def place(self, key: str) -> str:
        """The file and the place of `key` in it, for errors."""
        return f"{self._file}: '{self._place}{key}'"

    def wrong(self, key: str, why: str) -> KataFileError:
        """The error that says what is wrong with `key`."""
        return KataFileError(f"{self.place(key)} {why}.")

    def nothing_else(self) -> None:
        """Every key was asked for."""
        for key in self._raw:
            if key not in self._asked:
                raise self.wrong(key, "is an unknown key")

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._raw

    def is_table(self, key: str) -> bool:
        """Whether the key has a table."""
        return isinstance(self._raw.get(key), dict)

    def names(self) -> tuple[str, ...]:
        """Every key, for a table whose keys are free."""
        return tuple(self._raw)

    def text(self, key: str, default: object = _REQUIRED) -> str:
        """Text that is not empty, unless it may be absent."""
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, f"must be text, not {type(value).__name__}")
        if not value.strip() and default is _REQUIRED:
            raise self.wrong(key, "is empty")
        return value.strip("\n").rstrip()

    def exact_text(self, key: str) -> str:
        """Text just as it is written, which may be empty."""
        value = self._value(key)
        if not isinstance(value, str):
            raise self.wrong(key, f"must be text, not {type(value).__name__}")
        return value

    def texts(self, key: str, *, at_least: int) -> tuple[str, ...]:
        """A list of texts, none of them empty."""
        value = self._value(key)
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            raise self.wrong(key, "must be a list of texts, none of them empty")
        if len(value) < at_least:
            raise self.wrong(key, f"must have {at_least} or more, not {len(value)}")
        return tuple(item.strip() for item in value)

    def lists(self, key: str) -> list[tuple[str, ...]]:
        """A list of one or more lists of texts, none of them empty."""
        value = self._value(key)
        if not isinstance(value, list) or not value or not all(_texts(item) for item in value):
            raise self.wrong(key, "must be a list of lists of texts, none of them empty")
        return [tuple(item) for item in value]

    def identifiers(self, key: str) -> tuple[str, ...]:
        """A list of one or more Python names, all different."""
        names = self.texts(key, at_least=1)
        for name in names:
            if not name.isidentifier():
                raise self.wrong(key, f"must be Python names, not '{name}'")
            if names.count(name) > 1:
                raise self.wrong(key, f"has '{name}' more than once")
        return names

    def truth(self, key: str) -> bool:
        """true or false."""
        value = self._value(key)
        if not isinstance(value, bool):
            raise self.wrong(key, f"must be true or false, not {value!r}")
        return value

    def positive(self, key: str) -> int:
        """A whole number of 1 or more."""
        value = self._value(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.wrong(key, "must be a whole number of 1 or more")
        return value

    def number(self, key: str, *, least: float = float("-inf")) -> float:
        """A number of `least` or more; a whole one stays whole."""
        value = self._value(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= least:
            bound = "" if least == float("-inf") else f" of {least:g} or more"
            raise self.wrong(key, f"must be a number{bound}")
        return value

    def whole_numbers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers of 1 or more."""
        value = self._value(key)
        if not isinstance(value, list) or not value or not all(type(item) is int and item > 0 for item in value):
            raise self.wrong(key, "must be a list of whole numbers of 1 or more")
        return tuple(value)

    def nested_numbers(self, key: str) -> list[Any]:
        """Numbers in lists in lists."""
        value = self._value(key)
        if not isinstance(value, list) or not _all_numbers(value):
            raise self.wrong(key, "must be lists of numbers")
        return value

    def table(self, key: str) -> Table:
        """A table within this one; an empty one where there is none."""
        value = self._value(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "must be a table")
        return type(self)(value, self._file, f"{self._place}{key}.")

    def tables(self, key: str, *, at_least: int = 1) -> list[Table]:
        """A list of tables, `at_least` so many."""
        value = self._value(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, f"must be [[{self._place}{key}]] tables")
        if len(value) < at_least:
            raise self.wrong(key, f"must be there {at_least} times or more, not {len(value)}")
        places = [f"{self._place}{key}[{number}]." for number in range(1, len(value) + 1)]
        return [type(self)(item, self._file, place) for item, place in zip(value, places, strict=True)]

    def named_tables(self) -> list[tuple[str, Table]]:
        """Every key with its table, in the order of the file; a key is a Python name."""
        for key, value in self._raw.items():
            if not isinstance(value, dict):
                raise self.wrong(key, f"must be a [{self._place}{key}] table")
            if not key.isidentifier():
                raise self.wrong(key, "must be a Python name")
        self._asked.update(self._raw)
        return [(key, type(self)(value, self._file, f"{self._place}{key}.")) for key, value in self._raw.items()]

    def _value(self, key: str, default: object = _REQUIRED) -> object:
        self._asked.add(key)
        if key not in self._raw and default is _REQUIRED:
            near = difflib.get_close_matches(key, self._raw.keys() - self._asked, n=1)
            raise self.wrong(key, f"is missing; is '{near[0]}' meant to be it?" if near else "is missing")
        return self._raw.get(key, default)


def _texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) and one.strip() for one in value)


def _all_numbers(value: list[Any]) -> bool:
    numbers = [_all_numbers(item) if isinstance(item, list) else isinstance(item, (int, float)) for item in value]
    return bool(numbers) and all(numbers)
