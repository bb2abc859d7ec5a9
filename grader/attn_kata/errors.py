"""The errors that a person may see: what is wrong, the value in quotes, what to type next. Each has its exit code."""

from __future__ import annotations


class AttnKataError(Exception):
    """An error said in one sentence, with the next command if there is one. It is never shown as a traceback."""

    exit_code = 4

    def __init__(self, what: str, *, next_step: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        return [self.what, *([self.next_step] if self.next_step else [])]


class UsageError(AttnKataError):
    """An error that the person can correct: no such kata, no such file."""

    exit_code = 2


class KataFileError(AttnKataError):
    """A kata's folder does not follow the format. Names the file and the key. The attempt is not at fault."""


class OwnError(AttnKataError):
    """A fault of attn-kata itself, with what to report."""


def why(problem: OSError) -> str:
    """Only the reason of an OSError: `Permission denied`."""
    return problem.strerror or type(problem).__name__
