"""The failures of properties: a message for the candidate, and sometimes a small example."""

from __future__ import annotations

from dataclasses import dataclass

from attn_kata.report.model import Example

# What a message says where two outputs of the attempt are compared, and both are nan.
NAN_ON_BOTH_SIDES = "and so is the output that it is compared with"


class PropertyFailed(Exception):
    """The property does not hold. `message` says what the attempt did, with numbers at one index."""

    def __init__(self, message: str, example: Example | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.example = example


class NoAnswer(PropertyFailed):
    """The attempt gave no tensor to judge. The property's `look_at` does not help here, so a report leaves it out."""


class AttemptDied(Exception):
    """The attempt's process crashed or was killed. `reason` says why, in words for the report."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class OutOfTime(AttemptDied):
    """The attempt did not answer within its time."""


class ReadyMade(PropertyFailed):
    """The attempt called a ready-made operation, and the call was recorded."""


class Refused(NoAnswer):
    """The attempt called a blocked operation: `operation` is torch's name, `line` is the attempt's line if it is known."""

    def __init__(self, operation: str, line: int | None) -> None:
        self.operation, self.line = operation[:200], line  # a reply's text may be anything
        super().__init__(calls_ready_made(self.operation, line))


def calls_ready_made(operation: str, line: int | None = None) -> str:
    """The message for a call of a ready-made operation, with its public name."""
    where = "" if line is None else f" (line {line})"
    return f"calls {public_name(operation)}{where}, which is ready-made; the contract asks you to write it yourself"


def public_name(operation: str) -> str:
    """`aten::scaled_dot_product_attention` → `F.scaled_dot_product_attention`. Most other names do not change."""
    name = operation.removeprefix("aten::")
    if name in ("scaled_dot_product_attention", "softmax", "log_softmax"):
        return f"F.{name}"
    return operation.replace("torch.nn.functional.", "F.").replace("torch.nn.", "nn.")


@dataclass(frozen=True, kw_only=True)
class Raised:
    """An exception in the attempt: the names of its type and bases, its message, and (line, function) of each own frame."""

    types: tuple[str, ...]
    text: str
    frames: tuple[tuple[int, str], ...]

    @property
    def line(self) -> int | None:
        """The innermost line that is in the attempt."""
        return self.frames[-1][0] if self.frames else None

    @property
    def where(self) -> str:
        """The innermost line that is in the attempt, to be said behind the message; "" for none."""
        return "".join(f", line {line} in {function}" for line, function in self.frames[-1:])


class AttemptRaised(NoAnswer):
    """The attempt raised where the property needs an answer."""

    def __init__(self, raised: Raised) -> None:
        self.raised = raised
        text = f": {raised.text}" if raised.text else ""
        super().__init__(f"raised {raised.types[0]}{text}{raised.where}")

    @property
    def not_written(self) -> bool:
        """Whether it is the stub's own NotImplementedError."""
        return self.raised.types[0] == "NotImplementedError" and "is not written yet" in self.raised.text


class RaisedWithoutMask(AttemptRaised):
    """The attempt raised where it was called without a mask, which its call allows to leave out."""


class RaisedAnother(PropertyFailed):
    """The property needs an exception of one type, and the attempt raised one of another type."""

    def __init__(self, message: str, raised: Raised) -> None:
        self.raised = raised
        super().__init__(message)


class MissingName(NoAnswer):
    """The attempt has no function or class with the name in the contract."""

    def __init__(self, name: str, found: tuple[str, ...]) -> None:
        self.name, self.found = name, found
        has = f"it defines {', '.join(found)}" if found else "it defines no function or class"
        super().__init__(f'there is no "{name}" in the attempt; {has}')
