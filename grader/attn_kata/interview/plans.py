"""The plan of a session: its rounds. From a name in `plans.toml`, from a file of one's own, or from named katas.

The format of a plan. A file of one's own has these keys at the top; in `plans.toml` every plan is a table:

    title = "Phone screen"
    about = "..."                    # one line
    rounds = [
      { round = "write", kata = "sdpa", minutes = 20 },
      { round = "grow", minutes = 25 },        # without a kata: the next one of the drawn task
      { round = "talk" },                      # the questions: no kata, no minutes
    ]
    tasks = [["padding_mask"], ["causal_mask"]]   # where a round has no kata: one of these lists is drawn
"""

from __future__ import annotations

import difflib
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast

from attn_kata import catalog, workspace
from attn_kata.errors import KataFileError, UsageError
from attn_kata.interview import content
from attn_kata.interview.plan_file import PlanTable
from attn_kata.interview.rounds import KINDS, TALK, Round, RoundKind
from attn_kata.tables import Table

DEFAULT_PLAN = "core"
LEAST_MINUTES, MOST_MINUTES = 1.0, 480.0
_FILE = Path(__file__).with_name("plans.toml")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The rounds of a session. `name` is the plan's, or the katas joined.

    A round whose kata is empty gets one from the task that is drawn from `tasks` when the session starts.
    """

    name: str
    title: str
    about: str
    rounds: tuple[Round, ...]
    tasks: tuple[tuple[str, ...], ...] = ()

    @property
    def minutes(self) -> float:
        return math.fsum(one.minutes for one in self.rounds)

    @property
    def shown(self) -> str:
        """What it asks: `sdpa, causal_mask`, or the kinds of its rounds where the katas are drawn."""
        if not self.tasks:
            return ", ".join(_shown(one) for one in self.rounds if one.timed)
        return ", ".join(one.kind for one in self.rounds)


def _shown(one: Round) -> str:
    return one.kata if one.kind == "write" else f"{one.kind} {one.kata}"


@cache
def every() -> tuple[Plan, ...]:
    """Every plan whose katas are there, in the order of the file. Raises KataFileError."""
    whole = Table.of_file(_FILE)
    plans = (_plan(name, whole.table(name)) for name in whole.names())
    return tuple(possible for possible in map(_possible, plans) if possible is not None)


def _possible(plan: Plan) -> Plan | None:
    """The plan with the tasks whose katas are there; None where nothing is left."""
    known = set(catalog.slugs())
    tasks = tuple(task for task in plan.tasks if known.issuperset(task))
    if not known.issuperset(one.kata for one in plan.rounds if one.kata) or (plan.tasks and not tasks):
        return None
    return replace(plan, tasks=tasks)


def _plan(name: str, table: Table) -> Plan:
    rounds: list[Round] = []
    for one in table.tables("rounds"):
        rounds.append(_round(one, first=not any(before.written for before in rounds)))
    if len([one for one in rounds if not one.timed]) > 1 or (rounds[-1].timed and not all(one.timed for one in rounds)):
        raise table.wrong("rounds", "may have one talk, as the last round")
    if not any(one.timed for one in rounds):
        raise table.wrong("rounds", "needs a round besides the talk")
    open_ones = sum(1 for one in rounds if one.timed and not one.kata)
    tasks = _tasks(table, open_ones) if open_ones else ()
    plan = Plan(
        name=name, title=table.text("title"), about=table.text("about"), rounds=tuple(rounds), tasks=tuple(tasks)
    )
    table.nothing_else()
    for task in tasks or ((),):
        written = [one.kata for one in _filled(plan.rounds, task) if one.written]
        twice = next((slug for slug in written if written.count(slug) > 1), None)
        if twice:
            raise table.wrong("tasks" if twice in task else "rounds", f"would ask '{twice}' to be written twice")
    if plan.minutes > MOST_MINUTES:
        raise table.wrong("rounds", f"has {plan.minutes:g} minutes in all, more than {MOST_MINUTES:g}")
    return plan


def _round(table: Table, *, first: bool) -> Round:
    kind = table.text("round")
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1, cutoff=0.5)
        meant = f"; perhaps '{near[0]}' is meant" if near else ""
        raise table.wrong("round", f"must be one of {', '.join(KINDS)}, not '{kind}'{meant}")
    if kind == "talk":
        table.nothing_else()
        return TALK
    if kind == "grow" and first:
        raise table.wrong("round", "is 'grow', but no file has been written before it")
    kata = catalog.normal(table.text("kata")) if table.has("kata") else ""
    made = Round(kind=cast("RoundKind", kind), kata=kata, minutes=float(table.number("minutes", least=LEAST_MINUTES)))
    table.nothing_else()
    return made


def _tasks(table: Table, count: int) -> list[tuple[str, ...]]:
    listed = table.lists("tasks")
    for task in listed:
        if len(task) != count:
            raise table.wrong("tasks", f"must have {count} katas in each list, one for each round without a kata")
    return [tuple(map(catalog.normal, task)) for task in listed]


def of_name(name: str) -> Plan:
    """The plan `name`. Raises UsageError with the nearest name."""
    known = {plan.name: plan for plan in every()}
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    if wanted in known:
        return known[wanted]
    near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.5)
    meant = f" Did you mean '{near[0]}'?" if near else ""
    raise UsageError(
        f"There is no plan '{name}'.{meant}",
        next_step=f"The plans: {', '.join(known)}. Or your own: --plan FILE.toml. Or: --kata KATA",
    )


def named(text: str) -> Plan:
    """The plan of that name, or the one in the file at that path. Raises UsageError."""
    return of_file(Path(text)) if text.endswith(".toml") or Path(text).is_file() else of_name(text)


def of_file(file: Path) -> Plan:
    """A plan of one's own. Raises UsageError, which names the file and the line."""
    following = "What a plan looks like: attn-kata interview start --help"
    if not file.is_file():
        what = "is a folder, not a plan" if file.is_dir() else "is not there"
        raise UsageError(f"'{workspace.shown(file)}' {what}.", next_step=following)
    try:
        plan = _plan(file.stem, PlanTable.of_file(file))
    except KataFileError as problem:
        raise UsageError(str(problem), next_step=following) from problem
    known = catalog.slugs()
    for slug in (one for task in (*plan.tasks, tuple(r.kata for r in plan.rounds if r.kata)) for one in task):
        if slug not in known:
            near = difflib.get_close_matches(slug, known, n=1, cutoff=0.5)
            meant = f" Did you mean '{near[0]}'?" if near else ""
            line = PlanTable.line_of(file, slug)
            raise UsageError(
                f"{workspace.shown(file)}{line}: there is no kata '{slug}'.{meant}", next_step="attn-kata list"
            )
    for slug in (one for one in _derived(plan) if not _can_be_derived(one)):
        there = ", ".join(filter(_can_be_derived, known))
        raise UsageError(
            f"{workspace.shown(file)}{PlanTable.line_of(file, slug)}: '{slug}' has no derivation to ask for.",
            next_step=f"A derive round can have one of: {there}",
        )
    return plan


def _derived(plan: Plan) -> Iterator[str]:
    """The katas of its derive rounds."""
    for task in plan.tasks or ((),):
        yield from (one.kata for one in _filled(plan.rounds, task) if one.kind == "derive")


def _can_be_derived(slug: str) -> bool:
    return any(one.kind == "derive" for one in content.of_kata(slug).follow_ups)


def of_katas(names: tuple[str, ...]) -> Plan:
    """A session of these katas, with the minutes from each kata.toml. Raises UsageError."""
    katas = [catalog.find(name) for name in names]
    twice = {kata.slug for kata in katas if sum(other.slug == kata.slug for other in katas) > 1}
    if twice:
        raise UsageError(f"'{min(twice)}' is named more than once.", next_step="Name each kata once")
    rounds = tuple(Round(kata=kata.slug, minutes=float(kata.minutes)) for kata in katas)
    return Plan(
        name="+".join(kata.slug for kata in katas),
        title=", then ".join(kata.title for kata in katas),
        about="katas that you chose",
        rounds=(*rounds, TALK),
    )


def drawn(plan: Plan, *, before: Sequence[Sequence[str]], seed: int) -> Plan:
    """The plan with a kata in every round. `before` are the katas of the sessions so far, the newest first.

    What was asked longest ago comes first, so nothing is repeated while something else is left.
    """
    if not plan.tasks:
        return plan
    weight: Mapping[str, float] = {
        slug: 2.0**-age for age, katas in reversed(list(enumerate(before[:50]))) for slug in katas
    }
    used = [math.fsum(weight.get(slug, 0.0) for slug in set(task)) for task in plan.tasks]
    least = [task for task, sum_ in zip(plan.tasks, used, strict=True) if sum_ == min(used)]
    task = random.Random(seed).choice(least)
    return replace(plan, rounds=tuple(_filled(plan.rounds, task)), tasks=())


def _filled(rounds: Sequence[Round], task: Sequence[str]) -> list[Round]:
    katas = iter(task)
    return [replace(one, kata=next(katas)) if one.timed and not one.kata else one for one in rounds]


def with_minutes(plan: Plan, minutes: float) -> Plan:
    """The same rounds in `minutes` in total, in the same proportions."""
    share = minutes / plan.minutes
    return replace(plan, rounds=tuple(replace(one, minutes=one.minutes * share) for one in plan.rounds))


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
