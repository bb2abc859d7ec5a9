"""The replay of a reviewed session: its moments on one line of time, each with the code, its changes, and what held.

It reads only the body of `pages.body`. The page and the terminal show the same frames.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from attn_kata import resources
from attn_kata.errors import UsageError
from attn_kata.interview.moments import clock_text
from attn_kata.interview.timeline import IDLE_SECONDS
from attn_kata.report.plain import one_line

SPEEDS = (10, 30, 60, 120, 300)  # times as fast as it was
SPEED, FASTEST = 60, 3600
LANES = ("code", "runs", "questions", "clock")
NOT_RUN = "not run"

Mark = Literal["same", "added", "gone"]
Row = tuple[Mark, str]  # a line of the code, and what became of it
SIGNS: Mapping[Mark, str] = {"same": " ", "added": "+", "gone": "-"}

_LANE_OF = {
    **dict.fromkeys(("began", "advanced", "saved", "submitted", "time_up"), "code"),
    "ran": "runs",
    **dict.fromkeys(("asked", "followed_up", "answered", "ticked"), "questions"),
}
_TIME = re.compile(r"(-?)(?:(\d{1,3}):)?(\d{1,3}):(\d\d)", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One moment. `at` is seconds since coding began; `place` is where it stands on the line of time, from 0."""

    at: float
    place: float
    lane: str
    says: str
    version: int | None  # a place in `Replay.versions`: the code of this moment
    new: bool  # whether that code is seen here for the first time
    core: int | None  # core properties of the kata, where this code was graded
    holding: tuple[str, ...]
    lacking: tuple[str, ...]
    flips: tuple[tuple[str, str], ...]  # (property, "holds", "broke" or "holds again")

    @property
    def clock(self) -> str:
        """`12:30`; `-0:40` before the clock ran."""
        text = clock_text(abs(self.at))
        return f"-{text}" if self.at < 0 and text != "0:00" else text

    @property
    def held(self) -> str:
        """`3 of 5 core properties hold`, `not run`, or nothing where there is no code."""
        if self.version is None:
            return ""
        return NOT_RUN if self.core is None else f"{len(self.holding)} of {self.core} core properties hold"


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A session to play. In a version, each line says whether it is new since the version before, or was taken out."""

    title: str
    frames: tuple[Frame, ...]
    versions: tuple[tuple[Row, ...], ...]

    @property
    def length(self) -> float:
        """Seconds on the line of time; waits are shortened."""
        return self.frames[-1].place

    def at_place(self, place: float) -> int:
        """The last moment that is not after this place."""
        return max((number for number, one in enumerate(self.frames) if one.place <= place), default=0)

    def at_time(self, at: float) -> int:
        """The last moment that is not later than `at` seconds after coding began; else the first."""
        return max((number for number, one in enumerate(self.frames) if one.at <= at), default=0)


def of(shown: Mapping[str, Any]) -> Replay:
    """The replay of a reviewed session."""
    frames: list[Frame] = []
    versions: list[tuple[Row, ...]] = []
    before: dict[int, str] = {}  # stage → its code
    latest, place, last = "", 0.0, None
    graded: tuple[int | None, tuple[str, ...], tuple[str, ...]] = (None, (), ())
    for point in shown["timeline"]:
        if last is not None:
            place += min(max(0.0, point["at"] - last), IDLE_SECONDS)
        last = point["at"]
        new = point["code"] is not None
        if new:
            old = before.get(point["stage"], latest) if point["diff"] is not None else None
            versions.append(tuple(_rows(old, point["code"])))
            before[point["stage"]] = latest = point["code"]
        if point["version"] is not None:
            graded = (point["core"], tuple(point["holding"] or ()), tuple(point["lacking"] or ()))
        core, holding, lacking = graded
        frames.append(
            Frame(
                at=point["at"],
                place=round(place, 1),
                lane=_LANE_OF.get(point["kind"], "clock"),
                says=one_line(point["says"]),
                version=len(versions) - 1 if versions else None,
                new=new,
                core=core,
                holding=holding,
                lacking=lacking,
                flips=tuple((flip["property"], flip["how"]) for flip in point["flips"]),
            )
        )
    interview = shown["interview"]
    return Replay(
        title=f"Interview {interview['id']}: {interview['track']}", frames=tuple(frames), versions=tuple(versions)
    )


def _rows(before: str | None, after: str) -> Iterator[Row]:
    """The lines of `after`, with those of `before` that are gone; without marks where nothing came before."""
    new = after.splitlines()
    old = new if before is None else before.splitlines()
    for how, i, j, k, m in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if how == "equal":
            yield from (("same", line) for line in new[k:m])
        else:
            yield from (("gone", line) for line in old[i:j])
            yield from (("added", line) for line in new[k:m])


# The page --------------------------------------------------------------------------------------------------------------


def script() -> str:
    """The page's own script."""
    return (resources.templates_folder() / "interview_replay.js").read_text("utf-8")


def script_hash() -> str:
    """The only script that the page's policy lets run, as a Content-Security-Policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()


def for_page(made: Replay) -> dict[str, Any]:
    """The replay as JSON values. Lines and names are kept once: a frame has their numbers."""
    lines: dict[str, int] = {}
    names: dict[str, int] = {}
    versions = [
        [[list(SIGNS).index(mark), lines.setdefault(line, len(lines))] for mark, line in rows] for rows in made.versions
    ]
    frames = [
        {
            "place": one.place,
            "clock": one.clock,
            "lane": one.lane,
            "says": one.says,
            "version": one.version,
            "held": one.held,
            "holding": [names.setdefault(name, len(names)) for name in one.holding],
            "lacking": [names.setdefault(name, len(names)) for name in one.lacking],
            "flips": [f"{how}: {', '.join(every)}" for how, every in grouped(one.flips)],
        }
        for one in made.frames
    ]
    return {"lines": list(lines), "names": list(names), "versions": versions, "frames": frames}


# The terminal ----------------------------------------------------------------------------------------------------------


def as_text(made: Replay, at: float | None = None) -> str:
    """For a pipe: every moment with what changed; with `at`, that moment alone with the whole code."""
    head = [f"{made.title} · replay", ""]
    if at is None:
        return "\n".join([*head, *(line for one in made.frames for line in _moment(made, one))]) + "\n"
    one = made.frames[made.at_time(at)]
    rows = made.versions[one.version] if one.version is not None else ()
    code = [f"{SIGNS[mark]} {line}".rstrip() for mark, line in rows] or ["There is no code yet."]
    return "\n".join([*head, *_says(one), *_properties(one), "", *code]) + "\n"


def _moment(made: Replay, one: Frame) -> list[str]:
    said = _says(one)
    if one.new and one.version is not None:
        said += [f"{'':10}{SIGNS[mark]} {line}".rstrip() for mark, line in made.versions[one.version] if mark != "same"]
    return said


def _says(one: Frame) -> list[str]:
    held = f"  ({one.held})" if one.held and one.lane in ("code", "runs") else ""
    changed = [f"{'':10}{how}: {', '.join(names)}" for how, names in grouped(one.flips)]
    return [f"{one.clock:>8}  {one.says}{held}", *changed]


def _properties(one: Frame) -> list[str]:
    return [f"{'':10}[x] {name}" for name in one.holding] + [f"{'':10}[ ] {name}" for name in one.lacking]


def grouped(flips: Iterable[tuple[str, str]]) -> list[tuple[str, Sequence[str]]]:
    """The changed properties by how they changed."""
    found: dict[str, list[str]] = {}
    for name, how in flips:
        found.setdefault(how, []).append(name)
    return list(found.items())


def time_from(text: str | None) -> float | None:
    """Seconds since coding began, from `12:30` or `1:05:00`; with `-` before it. Raises UsageError."""
    if text is None:
        return None
    found = _TIME.fullmatch(text.strip())
    if found is None or int(found[4]) > 59:
        raise UsageError(
            f"'{one_line(text, most=40)}' is not a time of the clock.", next_step="Minutes and seconds: --at 12:30"
        )
    seconds = int(found[2] or 0) * 3600 + int(found[3]) * 60 + int(found[4])
    return -seconds if found[1] else seconds


def speed_from(text: str | None) -> float:
    """How many times as fast as it was. Raises UsageError."""
    if text is None:
        return SPEED
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 1 <= speed <= FASTEST:
        raise UsageError(
            f"'{one_line(text, most=40)}' is not a speed from 1 to {FASTEST}.",
            next_step=f"60 shows a minute in a second: --speed {SPEED}",
        )
    return speed
