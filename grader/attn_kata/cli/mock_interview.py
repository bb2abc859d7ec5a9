"""Commands that show answers refuse to run while a mock interview runs."""

from __future__ import annotations

from attn_kata.errors import UsageError


def refuse_while_running(command: str, what: str) -> None:
    """Raises UsageError while a mock interview runs, because `command` shows `what`. A coached one hides nothing."""
    from attn_kata.interview import active_mock

    running = active_mock()
    if running is not None:
        raise UsageError(
            f"'attn-kata {command}' does not run during mock {running}: a real interview has no {what} either.",
            next_step="Continue it: attn-kata interview. Or end it: attn-kata interview end",
        )
