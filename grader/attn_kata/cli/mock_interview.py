"""What the commands that would give something away do while a mock interview runs: they wait."""

from __future__ import annotations

from attn_kata.errors import UsageError


def unless_running(command: str, what: str) -> None:
    """Raises UsageError while a mock interview runs: `command` would show `what`. A coached one hides nothing."""
    from attn_kata.interview import active_mock

    running = active_mock()
    if running is not None:
        raise UsageError(
            f"'attn-kata {command}' waits until mock {running} is over: as in a real one, there are no {what} before.",
            next_step="Go on with it: attn-kata interview. Or leave it: attn-kata interview end",
        )
