"""Timed mock interviews: a session core without any user interface (`control`), its content, its store, its scorecard.

A user interface calls `control`; `session` is the state machine; `store` keeps events and snapshots; `review` grades the
kept versions and `scorecard` judges them. No module here imports torch or an attempt.
"""

from __future__ import annotations


def active_mock() -> str | None:
    """The mock interview that is in its briefing or on the clock, as `interview 3 (core)`, or None.

    Commands that show answers (hint, solution, grade) refuse while this is not None. Cheap: it opens one file, if it
    exists. If the file cannot be read, the result is None.
    """
    from attn_kata.interview import moments
    from attn_kata.interview.storage import NotKept
    from attn_kata.interview.store import Store

    try:
        session = Store(lambda sentence: None).active()
    except NotKept:
        return None
    if session is None or session.mode != "mock" or session.state not in ("ready", "briefing", "coding", "submitted"):
        return None
    if session.state != "briefing" and session.left(moments.read(moments.SystemClock())) <= 0:
        return None
    return session.name
