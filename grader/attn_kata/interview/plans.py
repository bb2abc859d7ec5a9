"""The plan of a session: its stages (katas with minutes), from a track in `tracks.toml` or from named katas."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attn_kata import catalog
from attn_kata.errors import UsageError
from attn_kata.tables import Table

DEFAULT_TRACK = "core"
LEAST_MINUTES, MOST_MINUTES = 1.0, 480.0
_FILE = Path(__file__).with_name("tracks.toml")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One kata of a session, and its minutes."""

    kata: str
    minutes: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The stages of a session. `name` is the track, or the katas joined."""

    name: str
    title: str
    about: str
    stages: tuple[Stage, ...]

    @property
    def minutes(self) -> float:
        return math.fsum(stage.minutes for stage in self.stages)


@cache
def tracks() -> tuple[Plan, ...]:
    """Every track whose katas are all there, in the order of the file. Raises KataFileError."""
    whole, known = Table.of_file(_FILE), set(catalog.slugs())
    every = [_track(name, whole.table(name)) for name in whole.names()]
    return tuple(plan for plan in every if known.issuperset(stage.kata for stage in plan.stages))


def _track(name: str, table: Table) -> Plan:
    plan = Plan(
        name=name,
        title=table.text("title"),
        about=table.text("about"),
        stages=tuple(_stage(stage) for stage in table.tables("stages")),
    )
    table.nothing_else()
    return plan


def _stage(table: Table) -> Stage:
    stage = Stage(kata=table.text("kata"), minutes=float(table.number("minutes", least=LEAST_MINUTES)))
    table.nothing_else()
    return stage


def of_track(name: str) -> Plan:
    """The track `name`. Raises UsageError with the nearest name."""
    every = {plan.name: plan for plan in tracks()}
    wanted = name.strip().lower().replace("_", "-")
    if wanted in every:
        return every[wanted]
    near = difflib.get_close_matches(wanted, every, n=1, cutoff=0.5)
    meant = f" Did you mean '{near[0]}'?" if near else ""
    raise UsageError(
        f"There is no track '{name}'.{meant}", next_step=f"The tracks: {', '.join(every)}. Or: --kata KATA"
    )


def of_katas(names: tuple[str, ...]) -> Plan:
    """A session of these katas, with the minutes from each kata.toml. Raises UsageError."""
    katas = [catalog.find(name) for name in names]
    twice = {kata.slug for kata in katas if sum(other.slug == kata.slug for other in katas) > 1}
    if twice:
        raise UsageError(f"'{min(twice)}' is named more than once.", next_step="Name each kata once")
    stages = tuple(Stage(kata=kata.slug, minutes=float(kata.minutes)) for kata in katas)
    return Plan(
        name="+".join(kata.slug for kata in katas),
        title=", then ".join(kata.title for kata in katas),
        about="katas that you chose",
        stages=stages,
    )


def with_minutes(plan: Plan, minutes: float) -> Plan:
    """The same stages in `minutes` in total, in the same proportions."""
    share = minutes / plan.minutes
    stages = tuple(Stage(kata=stage.kata, minutes=stage.minutes * share) for stage in plan.stages)
    return Plan(name=plan.name, title=plan.title, about=plan.about, stages=stages)


def minutes_from(text: str) -> float:
    """`--minutes` as a number. Raises UsageError for a value that makes no session."""
    following = f"Give a number from {LEAST_MINUTES:g} to {MOST_MINUTES:g}: --minutes 45"
    try:
        minutes = float(text)
    except ValueError:
        raise UsageError(f"'{text}' is not a number of minutes.", next_step=following) from None
    if math.isnan(minutes) or minutes < LEAST_MINUTES:
        raise UsageError(f"'{text}' minutes is too short for an interview.", next_step=following)
    if minutes > MOST_MINUTES:
        raise UsageError(f"'{text}' minutes is too long for an interview.", next_step=following)
    return minutes


def minutes_text(minutes: float) -> str:
    """`10`, `12.5`."""
    return f"{minutes:.1f}".removesuffix(".0")


def minutes_phrase(minutes: float) -> str:
    """`10 minutes`, `12.5 minutes`, `1 minute`; `24 seconds` for less than a minute."""
    count, unit = (minutes_text(minutes), "minute") if minutes >= 1 else (f"{round(minutes * 60)}", "second")
    return f"{count} {unit}{'' if count == '1' else 's'}"
