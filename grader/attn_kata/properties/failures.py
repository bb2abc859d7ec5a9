"""How a property fails: with words for the candidate, and a small example where there is one."""

from __future__ import annotations

from dataclasses import dataclass

from ..report.model import Example


class PropertyFailed(Exception):
    """The property does not hold: `message` says what was seen, with numbers at one index."""

    def __init__(self, message: str, example: Example | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.example = example


class NoAnswer(PropertyFailed):
    """There was no tensor to judge: where the property would have one look says nothing about it."""


@dataclass(frozen=True, kw_only=True)
class Raised:
    """An exception of the attempt's: the names of its type and bases, its message, and its own frames' (line, function)."""

    types: tuple[str, ...]
    text: str
    frames: tuple[tuple[int, str], ...]

    @property
    def line(self) -> int | None:
        """The attempt's own innermost line."""
        return self.frames[-1][0] if self.frames else None


class AttemptRaised(NoAnswer):
    """The attempt raised where the property needs an answer."""

    def __init__(self, raised: Raised) -> None:
        self.raised = raised
        where = "".join(f", line {line} in {function}" for line, function in raised.frames[-1:])
        text = f": {raised.text}" if raised.text else ""
        super().__init__(f"raised {raised.types[0]}{text}{where}")

    @property
    def not_written(self) -> bool:
        """Whether it is the stub's own NotImplementedError."""
        return self.raised.types[0] == "NotImplementedError" and "is not written yet" in self.raised.text


class MissingName(NoAnswer):
    """The attempt has no function or class of the name that the contract gives."""

    def __init__(self, name: str, found: tuple[str, ...]) -> None:
        self.name, self.found = name, found
        has = f'it defines {", ".join(found)}' if found else "it defines no function or class"
        super().__init__(f'there is no "{name}" in the attempt; {has}')
