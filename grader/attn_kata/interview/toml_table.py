"""What an interview.toml holds beyond the values of other TOML files: truths, numbers, tables whose keys are free."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attn_kata.tables import Table


class InterviewTable(Table):
    """A strictly read table. All its methods raise KataFileError, which names file and key."""

    @classmethod
    def of_interview(cls, file: Path) -> InterviewTable:
        """The whole of `file`."""
        return cls(Table.of_file(file)._raw, file, "")

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._raw

    def names(self) -> tuple[str, ...]:
        """Every key, for a table whose keys are free."""
        return tuple(self._raw)

    def truth(self, key: str) -> bool:
        """true or false."""
        value = self._value(key)
        if not isinstance(value, bool):
            raise self.wrong(key, f"must be true or false, not {value!r}")
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

    def table(self, key: str) -> InterviewTable:
        """A table within this one; an empty one where there is none."""
        value = self._value(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "must be a table")
        return InterviewTable(value, self._file, f"{self._place}{key}.")

    def tables_of(self, key: str, *, at_least: int) -> list[InterviewTable]:
        """A list of tables."""
        value = self._value(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, f"must be [[{self._place}{key}]] tables")
        if len(value) < at_least:
            raise self.wrong(key, f"must be there {at_least} times or more, not {len(value)}")
        places = [f"{self._place}{key}[{number}]." for number in range(1, len(value) + 1)]
        return [InterviewTable(item, self._file, place) for item, place in zip(value, places, strict=True)]


def _all_numbers(value: list[Any]) -> bool:
    numbers = [_all_numbers(item) if isinstance(item, list) else isinstance(item, (int, float)) for item in value]
    return bool(numbers) and all(numbers)
