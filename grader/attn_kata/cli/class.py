"""`attn-kata class`: grades every submission of a class, with scores and pages."""

from __future__ import annotations

import functools
import secrets
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from attn_kata.cli import mock_interview, signals
from attn_kata.cli.arguments import complete_kata
from attn_kata.cli.grade import DEFAULT_SECONDS, seconds
from attn_kata.cli.output import color, emit, warn, width
from attn_kata.cli.reading_options import ReadingOptions, reading_options
from attn_kata.errors import UsageError

if TYPE_CHECKING:
    from attn_kata.classroom.run import Map
    from attn_kata.classroom.setting import Setting
    from attn_kata.classroom.submissions import Collected
    from attn_kata.report.rubric import Rubric

SHOW = "show"
MOST_JOBS = 512
NOT_GRADED = 3  # the exit code where a submission has no verdict


@click.command("class")
@click.argument("what", metavar="SUBMISSIONS | show FOLDER", nargs=-1)
@click.option(
    "--kata", metavar="KATA", shell_complete=complete_kata, help="What was to be written; attn-kata list has the names."
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FOLDER", help="For the results.  [default: ./KATA-class]"
)
@click.option(
    "--jobs", type=click.IntRange(1, MOST_JOBS), help="Submissions at a time.  [default: one for each processor]"
)
@click.option("--dask", metavar="ADDRESS", help="Grade on the workers of this dask scheduler.")
@click.option(
    "--rubric", type=click.Path(path_type=Path), metavar="FILE", help="Points for mistakes and groups (TOML)."
)
@click.option("--show-rubric", is_flag=True, help="Print the default rubric.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    help="Seed of the random inputs, one for the class.  [default: random, kept in FOLDER]",
)
@click.option(
    "--timeout",
    type=float,
    default=DEFAULT_SECONDS,
    show_default=True,
    callback=seconds,
    metavar="SECONDS",
    help="Limit for one submission.",
)
@functools.partial(reading_options, writes=False, strict=False)
@click.option(
    "--resume/--fresh", default=True, help="Keep results that are there (default), or grade everything again."
)
def command(
    what: tuple[str, ...],
    kata: str | None,
    out: Path | None,
    jobs: int | None,
    dask: str | None,
    rubric: Path | None,
    show_rubric: bool,
    seed: int | None,
    timeout: float,
    resume: bool,
    reading: ReadingOptions,
) -> int:
    """Grade a class: every submission in a folder or a zip.

    SUBMISSIONS has one file or one folder for each student, as Moodle, Canvas and GitHub Classroom give them. The results
    are in FOLDER: class.html, results.csv, results.json, and two pages for each student. Your own progress is not changed.
    If the command is stopped, give it again: it goes on where it stopped.

    Submissions have the names of the kata's contract. Where yours have other names, say once how all of them are to be read:
    --class Attention --mask hide. `attn-kata grade FILE --kata KATA` finds a reading and shows its flags.

    `attn-kata class show FOLDER` prints the summary again. The exit code is 0 when every submission was graded, whatever
    the verdicts, and 3 when some could not be graded; they are listed.
    """
    if show_rubric:
        from attn_kata.report import rubric as rubrics

        emit(rubrics.FILE.read_text("utf-8"))
        return 0
    mock_interview.refuse_while_running("class", "findings of hidden tests")
    chosen = _rubric(rubric)
    if what[:1] == (SHOW,):
        if len(what) != 2:
            raise UsageError("'show' takes one folder.", next_step="attn-kata class show FOLDER")
        return _show(Path(what[1]), chosen)
    if len(what) != 1:
        raise UsageError(
            "Name one folder or zip with the submissions.", next_step="attn-kata class SUBMISSIONS --kata KATA"
        )
    if kata is None:
        raise UsageError("Which kata is it?", next_step="Name it: --kata KATA (the katas: attn-kata list)")
    return _grade(
        Path(what[0]),
        kata,
        out=out,
        jobs=jobs,
        dask=dask,
        rubric=chosen,
        seed=seed,
        timeout=timeout,
        fresh=not resume,
        reading=reading,
    )


def _rubric(path: Path | None) -> Rubric | None:
    if path is None:
        return None
    from attn_kata.classroom import mistakes
    from attn_kata.report import rubric

    return rubric.load(path, mistakes.ids())


def _show(folder: Path, rubric: Rubric | None) -> int:
    from attn_kata.classroom import outputs, store, words

    found, info = store.existing(folder, warn)
    summary = outputs.counted(found, info, rubric)
    emit(words.render(summary, folder=str(folder), width=width(), color=color()))
    return NOT_GRADED if summary.with_outcome("missing") else 0


def _grade(
    path: Path,
    kata_name: str,
    *,
    out: Path | None,
    jobs: int | None,
    dask: str | None,
    rubric: Rubric | None,
    seed: int | None,
    timeout: float,
    fresh: bool,
    reading: ReadingOptions,
) -> int:
    from attn_kata import catalog
    from attn_kata.classroom import outputs, progress, store, submissions, tree, words
    from attn_kata.classroom.run import listed, run
    from attn_kata.classroom.setting import Setting, version_here

    kata = catalog.find(kata_name)
    reading.check(kata)
    folder = out or Path(f"{kata.slug}-class")
    bar = sys.stderr.isatty()
    with tree.opened(path) as files:
        collected = submissions.collect(files, kata, reading.entry)
        if not collected.submissions:
            raise UsageError(_nothing(path, collected), next_step="It holds one file or one folder for each student")
        with store.locked(folder):
            kept = store.Store(folder, warn)
            before = kept.info()
            if before is not None and before.kata != kata.slug:
                raise UsageError(
                    f"'{folder}' has the results of {before.kata}, not of {kata.slug}.",
                    next_step="Name another folder: --out FOLDER",
                )
            if seed is None:
                seed = secrets.randbelow(2**31) if before is None else before.seed
            setting = Setting(
                kata=kata.slug, seed=seed, timeout=timeout, version=version_here(kata), flags=reading.flags
            )
            every = [(each, listed(each, setting)) for each in collected.submissions]
            info = store.RunInfo(kata=kata.slug, seed=seed, submissions=str(path))
            if fresh:
                kept.forget()
            kept.begin(info, [each for _, each in every], collected.left_out)
            try:
                with progress.shown(warn, bar=bar) as tell:
                    run(every, kept, lambda: _map(dask, jobs, setting), tell)
                summary = outputs.write(kept, info, rubric)
            except signals.Stopped:
                warn("Stopped. What is graded is kept: the same command goes on from there.")
                raise
    emit(words.render(summary, folder=str(folder), width=width(), color=color()))
    return NOT_GRADED if summary.with_outcome("missing") else 0


def _map(dask: str | None, jobs: int | None, setting: Setting) -> AbstractContextManager[Map]:
    if dask is not None:
        from attn_kata.classroom.cluster import ClusterMap

        return ClusterMap(dask, setting)
    from attn_kata.classroom.local import LocalMap
    from attn_kata.engine.pool import processors_here

    return LocalMap(jobs or len(processors_here()), setting)


def _nothing(path: Path, collected: Collected) -> str:
    said = f"'{path}' has no submissions."
    return f"{said} {collected.left_out[0]}" if collected.left_out else said
