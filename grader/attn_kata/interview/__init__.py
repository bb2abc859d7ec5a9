"""Timed mock interviews: a session core free of any face (`control`), its content, its store, and the scorecard.

`control` is what a face calls; `session` is the state machine; `store` keeps events and snapshots; `review` grades what
was kept and `scorecard` judges it. Nothing in here imports torch, and nothing imports an attempt.
"""

from __future__ import annotations


def active_mock() -> str | None:
    """The mock interview that is in its briefing or on the clock, as `interview 3 (core)`; None where there is none.

    For commands that would give something away (hint, solution, grade): they refuse while this is not None. Cheap: one
    file is looked at, and opened only where it is there. Where it cannot be read, nothing is known to run.
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
