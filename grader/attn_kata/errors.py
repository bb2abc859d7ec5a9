"""The errors that a person may meet: what is wrong, the value in quotes, what to type next. Each owns its exit code."""

from __future__ import annotations


class AttnKataError(Exception):
    """Said in one sentence, with the next command where there is one; never shown as a traceback."""

    exit_code = 4

    def __init__(self, what: str, *, next_step: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step


class UsageError(AttnKataError):
    """Something that the person can put right: no such kata, no such file."""

    exit_code = 2


class KataFileError(AttnKataError):
    """A kata's folder does not keep to the format; names the file and the key. A fault of ours, not of the attempt."""


class OwnError(AttnKataError):
    """A fault of attn-kata's own, with what to report."""


def why(problem: OSError) -> str:
    """The reason alone: `Permission denied`."""
    return problem.strerror or type(problem).__name__
