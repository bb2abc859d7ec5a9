"""TOML files read strictly: a key that is unknown, missing or of the wrong type is an error that names file and key."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
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

    def __init__(self, raw: dict[str, Any], file: Path, place: str) -> None:
        self._raw = raw
        self._file = file
        self._place = place
        self._asked: set[str] = set()

    @classmethod
    def of_file(cls, file: Path, *, before: str | None = None, known: Iterable[str] = ()) -> Table:
        """The whole of `file`, or what lies `before` the line that begins with that key. `known` keys were asked for."""
        try:
            text = file.read_text(encoding="utf-8")
            if before is not None:
                text = re.split(rf"^{before}\b", text, maxsplit=1, flags=re.MULTILINE)[0]
            table = cls(tomllib.loads(text), file, "")
            table._asked.update(known)
            return table
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

    def docstring(self, key: str, default: object = _REQUIRED) -> str:
        """Text that can stand between three double quotes."""
        value = self.text(key, default)
        if "\\" in value or '"""' in value or value.endswith('"'):
            raise self.wrong(
                key, "goes into a docstring: no backslash, no three double quotes, no double quote at its end"
            )
        return value

    def identifier(self, key: str) -> str:
        """A Python name."""
        value = self.text(key)
        if not value.isidentifier():
            raise self.wrong(key, f"must be a Python name, not '{value}'")
        return value

    def positive(self, key: str) -> int:
        """A whole number of 1 or more."""
        value = self._value(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.wrong(key, "must be a whole number of 1 or more")
        return value

    def texts(self, key: str, *, at_least: int) -> tuple[str, ...]:
        """A list of texts, none of them empty."""
        value = self._value(key)
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            raise self.wrong(key, "must be a list of texts, none of them empty")
        if len(value) < at_least:
            raise self.wrong(key, f"must have {at_least} or more, not {len(value)}")
        return tuple(item.strip() for item in value)

    def tables(self, key: str) -> list[Table]:
        """One or more tables."""
        value = self._value(key)
        if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, f"must be one or more [[{self._place}{key}]] tables")
        return [Table(item, self._file, f"{self._place}{key}[{number}].") for number, item in enumerate(value, 1)]

    def named_tables(self) -> list[tuple[str, Table]]:
        """Every key with its table, in the order of the file; a key is a Python name."""
        for key, value in self._raw.items():
            if not isinstance(value, dict):
                raise self.wrong(key, f"must be a [{self._place}{key}] table")
            if not key.isidentifier():
                raise self.wrong(key, "must be a Python name")
        self._asked.update(self._raw)
        return [(key, Table(value, self._file, f"{self._place}{key}.")) for key, value in self._raw.items()]

    def _value(self, key: str, default: object = _REQUIRED) -> object:
        self._asked.add(key)
        if key not in self._raw and default is _REQUIRED:
            raise self.wrong(key, "is missing")
        return self._raw.get(key, default)
