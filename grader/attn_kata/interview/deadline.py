"""The deadline: announcements before it, and the version that is taken when the time is up."""

from __future__ import annotations

from collections.abc import Iterable

from attn_kata.interview import moments
from attn_kata.interview.attempts import written
from attn_kata.interview.moments import Moment
from attn_kata.interview.session import Session
from attn_kata.interview.store import Entry, digest_of, entry

ANNOUNCED_MINUTES = (10.0, 5.0, 1.0)
LATE_SECONDS = 2.0  # on some disks, file times are less exact than the clock


def due(session: Session, now: Moment) -> bool:
    """Whether an announcement or the end is due at `now`, or the machine's clock was set."""
    return session.clock_runs and (
        session.left(now) <= 0 or bool(_crossed(session, now)) or moments.set_by(session.last, now) != 0
    )


def said(session: Session, *, since: int) -> tuple[str, ...]:
    """The sentences of the clock's events after the event number `since`, whichever terminal it was that kept them."""
    return tuple(event.data["says"] for event in session.events if event.number > since and event.data.get("says"))


def keeping(session: Session, now: Moment) -> Iterable[Entry]:
    """The entries that are due. Each has the sentence to say; of announcements in one moment, only the last."""
    if not session.clock_runs:
        return
    left, by = session.left(now), moments.set_by(session.last, now)
    if by:
        way = "forward" if by > 0 else "back"
        says = f"The machine's clock was set {way} by {moments.in_words(abs(by))}. Your time left is the same."
        yield entry(session, now, "clock_set", by=round(by, 3), says=says)
    if left <= 0:
        yield _time_up(session, now, -left)
        return
    crossed = _crossed(session, now)
    half = "Half of the time is over. " if crossed and crossed[0] == session.seconds / 120 else ""
    for place, minutes in enumerate(crossed, 1):
        says = f"{half}{moments.in_words(left)} left." if place == len(crossed) else ""
        yield entry(session, now, "announced", left=minutes, says=says)


def _crossed(session: Session, now: Moment) -> list[float]:
    """The announcements that are due, in minutes left: each once, only those within the session."""
    whole, left = session.seconds / 60, session.left(now) / 60
    every = {whole / 2, *(minutes for minutes in ANNOUNCED_MINUTES if minutes < whole)}
    return sorted(minutes for minutes in every - session.announced if left <= minutes)


def _time_up(session: Session, now: Moment, over: float) -> Entry:
    """The version that is taken: the file, or the newest saved version if the file is gone or changed after the end.

    A file that changed after the end and was never saved before is still taken, and marked as late.
    """

    def taken(how: str, sentence: str, digest: str | None, source: bytes | None = None) -> Entry:
        says = f"The time is up. {sentence}"
        return entry(session, now, "time_up", source, over=over, how=how, taken=digest, says=says)

    if session.state != "coding" or session.file is None:
        counts = "The answers that you gave count." if session.state == "follow_up" else "What you submitted counts."
        return taken("between stages", f"{counts} The next rounds stay open.", None)
    found, kept = written(session.file), session.kept[session.stage]
    if found.source is None or found.changed is None:
        return taken("not on the disk", f"{found.why}: the newest version that was kept is taken.", kept)
    digest = digest_of(found.source)
    if digest != kept and found.changed > _end(session, now, over, found.changed) + LATE_SECONDS:
        stub = next(event.source for event in session.events if event.stage == session.stage and event.source)
        if kept != stub:
            sentence = "Your file changed after the end, so the newest version saved before the end is taken."
            return taken("changed after the end", sentence, kept)
        sentence = "Your file was saved only after the end. It is taken, and marked as late."
        return taken("late", sentence, digest, found.source)
    return taken("on the disk", "Your file is taken as it is on the disk.", digest, found.source)


def _end(session: Session, now: Moment, over: float, changed: float) -> float:
    """The wall time of the end, to compare with the time of a file's last change.

    A file from the future was saved before the clock was set back. Its time is compared with the end on the clock of then.
    """
    end = now.wall - over
    if changed <= now.wall:
        return end
    before = [event.moment for event in session.events if event.moment.boot_id == now.boot_id]
    return max([end, *(one.wall + (now.boot - over - one.boot) for one in before)])
