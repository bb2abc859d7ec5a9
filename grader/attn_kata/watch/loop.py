"""The main loop of `watch`: takes in saves, reports and keys, and updates the screen."""

from __future__ import annotations

import queue
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attn_kata import catalog, contract, curriculum, hints, workspace
from attn_kata.errors import AttnKataError
from attn_kata.history import History
from attn_kata.rounds import hunt
from attn_kata.rounds.record import Hunt, Record
from attn_kata.watch.files import Seen, Watcher
from attn_kata.watch.grading import Done, Grader
from attn_kata.watch.session import WatchSession
from attn_kata.watch.terminal import Terminal

if TYPE_CHECKING:
    from attn_kata.engine.persistent import PersistentEngine
    from attn_kata.report.model import Report
    from attn_kata.watch.screen import Page

TICK_SECONDS = 1.0


class Loop:
    """One run of `watch`, which may go on from kata to kata."""

    def __init__(
        self,
        target: workspace.Attempt,
        engine: PersistentEngine,
        history: History,
        *,
        seed: int = 0,
        flags: tuple[str, ...] = (),
        reads: bool = True,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._history = history
        self._wake = wake
        self._news: queue.SimpleQueue[tuple[Path, Seen] | Done] = queue.SimpleQueue()
        self._grader = Grader(engine, self._put, seed=seed, given=flags, reads=reads)
        self._watcher: Watcher | None = None
        self._unkept: list[tuple[Report, Path]] = []
        self._rounds = Record(self._say)
        self._hunt: Hunt | None = None  # if this file was written for a bug hunt
        self.notice = ""
        self.session = self._begin(target)

    def stop(self) -> None:
        """Stop watching and grading."""
        self.keep()
        if self._watcher is not None:
            self._watcher.stop()
        self._grader.stop()

    def catch_up(self) -> list[Report]:
        """Take in all news; the new reports that are about the file's present content."""
        reports = []
        while True:
            try:
                news = self._news.get_nowait()
            except queue.Empty:
                break
            if isinstance(news, tuple):
                self._saw(*news)
                continue
            report = self.session.take(news)
            if report is not None and self._hunt is not None:
                report = self.session.report = self._hunt.judged(report, news.job.source.code)
            if report is not None:
                reports.append(report)
            mending = self._hunt is not None or hunt.is_hunt(news.job.source.code)
            if report is not None and not report.not_written and (report.hunt is not None or not mending):
                self._unkept.append((report, self.session.path))
        self._grader.drop_stale()
        return reports

    def keep(self) -> None:
        """Write the new reports into the history. Called after they are shown, because a disk may be slow."""
        unkept, self._unkept = self._unkept, []
        for report, path in unkept:
            if report.hunt is not None:
                self._rounds.hunt_went(report.kata, report.hunt)
            else:
                self._history.record(report, path, whole=True)

    def grade_again(self) -> None:
        """Grade the same content once more."""
        job = self.session.again()
        if job is not None:
            self._grader.grade(job)

    def hint(self) -> tuple[str, str]:
        """The next hint, as title and text."""
        kata = self.session.kata
        hint = hints.following(kata, self._history)
        return hints.title(kata, hint), hint.text

    def prompt(self) -> tuple[str, str]:
        """What to build, as title and text."""
        kata = self.session.kata
        return f"{kata.slug}: {kata.title}, about {kata.minutes} minutes", contract.load(kata.prompt).text

    def next_kata(self) -> None:
        """After a pass, continue with the kata that comes next, in a stub beside this file."""
        if not self.session.passed:
            self.notice = f"{self.session.kata.slug} does not pass yet. For another kata: q, then attn-kata start KATA"
            return
        progress = self._history.progress()
        passed = [slug for slug, done in progress.items() if done.passed_at]
        kata = curriculum.following(catalog.katas(), passed, besides=self.session.kata.slug)
        if kata is None:
            self.notice = (
                "You passed every kata, or one that builds on it. For an interview: q, then attn-kata interview"
            )
            return
        try:
            path = workspace.start(kata, self.session.path.parent, "standard", self._history)
            self.notice = f"{workspace.shown(path)} is a new stub: open it in your editor."
        except workspace.StubExists:
            path = self.session.path.parent / f"{kata.slug}.py"
            self.notice = f"Going on with {workspace.shown(path)}."
        except AttnKataError as problem:
            self.notice = f"{problem.what} {problem.next_step or ''}"
            return
        self._grader.begin_anew()
        self.session = self._begin(workspace.Attempt(kata=kata, path=path, name=workspace.shown(path)))

    def _begin(self, target: workspace.Attempt) -> WatchSession:
        if self._watcher is not None:
            self._watcher.stop()
        path = target.path
        self._hunt = self._rounds.hunt_at(path, target.kata.slug)
        session = WatchSession(kata=target.kata, path=path, name=target.name, started=time.monotonic())
        self._watcher = Watcher(path, lambda seen: self._put((path, seen)))
        return session

    def _saw(self, path: Path, seen: Seen) -> None:
        if path != self.session.path:
            return  # news of the previous kata
        job = self.session.job_for(seen)
        if job is not None:
            if self.session.gradings:  # before the first grading, the notice is about this file
                self.notice = ""
            self._grader.grade(job)

    def _say(self, sentence: str) -> None:
        self.notice = sentence

    def _put(self, news: tuple[Path, Seen] | Done) -> None:
        self._news.put(news)
        self._wake()


def on_screen(make: Callable[..., Loop], *, color: bool) -> None:
    """Watch on a screen with keys, until q. `make(wake=…)` begins. Raises UsageError where watchfiles is not installed."""
    terminal = Terminal()
    loop = make(wake=terminal.wake)
    from attn_kata.watch import screen  # rich is imported while torch loads

    page: Page | None = None
    try:
        with terminal:
            while True:
                loop.catch_up()
                width, height = terminal.size
                if page is not None:
                    lines = screen.draw_page(page, width=width, height=height, color=color)
                else:
                    lines = screen.draw(
                        loop.session, now=time.monotonic(), width=width, height=height, color=color, notice=loop.notice
                    )
                terminal.show(lines)
                loop.keep()
                try:
                    key = terminal.wait(TICK_SECONDS)
                except (EOFError, OSError):
                    return  # the terminal was closed
                if key is None:
                    continue
                if page is not None:
                    page = _turned(page, key, height)
                    continue
                if key == "q":
                    return
                loop.notice = ""
                page = _answered(loop, key, width, color)
    finally:
        loop.stop()


def _turned(page: Page, key: str, height: int) -> Page | None:
    from attn_kata.watch import screen

    by = {
        "up": -1,
        "k": -1,
        "down": 1,
        "j": 1,
        " ": height - 4,
        "page down": height - 4,
        "b": 4 - height,
        "page up": 4 - height,
    }
    return screen.scrolled(page, by[key], height) if key in by else None


def _answered(loop: Loop, key: str, width: int, color: bool) -> Page | None:
    """Do what a key asks for. Returns the page that it opens, or None."""
    from attn_kata.report import terminal as full
    from attn_kata.watch import screen

    if key == "g":
        loop.grade_again()
    elif key == "n":
        loop.next_kata()
    elif key == "h":
        title, text = loop.hint()
        return screen.Page(title=title, lines=screen.wrapped(text, width))
    elif key == "p":
        title, text = loop.prompt()
        return screen.Page(title=title, lines=screen.markdown(text, width, color=color))
    elif key == "f" and loop.session.report is not None:
        text = full.render(loop.session.report, width=width, color=color, advice=False)
        return screen.Page(title=f"{loop.session.kata.slug}: the full report", lines=text.rstrip("\n").split("\n"))
    return None


def in_lines(make: Callable[..., Loop], *, emit: Callable[[str], None]) -> None:
    """Watch without a terminal: print a few lines for each grading, until a signal. `make(wake=…)` begins."""
    import threading

    happened = threading.Event()
    loop = make(wake=happened.set)
    from attn_kata.report.summary import diagnosis_text, headline, listed, not_graded, read_as

    missing: str | None = None
    try:
        while True:
            happened.wait(TICK_SECONDS)
            happened.clear()
            for report in loop.catch_up():
                lines = [headline(report), *read_as(report)]
                flips = loop.session.flips
                lines += [f"now holds: {listed(flips.now_hold)}"] if flips.now_hold else []
                lines += [f"now fails: {listed(flips.now_fail)}"] if flips.now_fail else []
                lines += [not_graded(report)] if report.ungraded_because else []
                lines += [hunt.note(report.hunt)] if report.hunt else []
                emit(textwrap.indent("\n".join(filter(None, [*lines, diagnosis_text(report)])), "  ").lstrip())
            loop.keep()
            if loop.session.missing != missing:
                missing = loop.session.missing
                if missing:
                    emit(f"Waiting for the file: {missing}")
            if loop.session.fault is not None:
                raise loop.session.fault
    finally:
        loop.stop()
