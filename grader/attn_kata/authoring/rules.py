"""The rules that every kata is held to, checked over its folder: for `attn-kata dev check` and for the tests alike.

The reference holds every property. Each right attempt holds every core property and fails exactly the edge properties that it
names. The untouched stub passes none at any level. Each wrong attempt is failed, by the properties that it names, and
diagnosed as it says. Every property is broken by at least one wrong attempt. The folder holds nothing that nothing reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from attn_kata import catalog, curriculum, specimens, stub
from attn_kata.authoring import examples, handout, new, pipelines
from attn_kata.authoring.workbench import Workbench
from attn_kata.catalog import Kata
from attn_kata.diagnosis import catalogue
from attn_kata.engine.client import Engine, EngineFault
from attn_kata.errors import KataFileError, UsageError
from attn_kata.report.model import Isolation, Report
from attn_kata.resources import katas_folder
from attn_kata.specimens import Specimen
from attn_kata.workspace import shown

MIN_RIGHT, MIN_WRONG = 6, 10
COMPARED = 3  # wrong attempts whose two reports must be equal: that of the engine, and that of the workbench
FROM_SCRATCH = "from_scratch"
# Properties that every kata has under these names: the diagnosis reads some of them.
REQUIRED = (
    "gradients",
    "output_dtype",
    "float32",
    "inputs_unmodified",
    "device",
    "half_precision",
    "float64_throughout",
)
# And test_<slug>.py.
_FILES = (
    "kata.toml",
    "prompt.md",
    "stub.py.j2",
    "mistakes.py",
    "interview.toml",
    "wrong.toml",
    "examples.toml",
    "mistakes.toml",
    "reading.toml",
)
_FOLDERS = ("right", "wrong")


@dataclass(kw_only=True)
class Check:
    """What checking one kata found. `broken` has, for each property, the specimens that break it."""

    kata: str
    problems: list[str] = field(default_factory=list)
    broken: dict[str, list[str]] = field(default_factory=dict)
    graded: int = 0


def find(name: str) -> Kata:
    """The kata called `name`, or in the folder `name`. Raises UsageError."""
    if catalog.normal(name) in catalog.slugs():
        return catalog.find(name)
    folder = next((each for each in (Path(name), katas_folder() / catalog.normal(name)) if each.is_dir()), None)
    if folder is None:
        return catalog.find(name)  # which says what was meant
    folder = folder.resolve()
    if not (folder / "kata.toml").is_file():
        raise UsageError(
            f"There is no kata.toml in '{shown(folder)}'.",
            next_step="CONTRIBUTING.md says what the folder of a kata holds.",
        )
    if folder.parent != katas_folder():
        raise UsageError(
            f"'{shown(folder)}' is not among the katas.",
            next_step=f"Move it to '{shown(katas_folder() / folder.name)}'",
        )
    return catalog.load(folder)


def check(kata: Kata, engine: Engine, workbench: Workbench, *, whole: bool = False) -> Check:
    """Hold one kata to every rule. Wrong attempts are graded on the workbench, a few of them in the engine too, to compare.

    With `whole`, every case of every property is asked of each, and not only of the properties that it names.
    """
    result = Check(kata=kata.slug)
    say = result.problems.append

    def grade(name: str, source: bytes) -> Report:
        result.graded += 1
        return engine.grade(kata.slug, source, attempt=name)

    result.problems.extend(_unknown(kata))
    result.problems.extend(_hints_about_nothing(kata))
    result.problems.extend(curriculum.problems(kata, catalog.katas()))
    sources: list[tuple[Specimen, bytes]] = []
    try:
        found = specimens.read(kata.folder)
    except KataFileError as problem:
        say(problem.what)
        found = []
    for specimen in found:
        try:
            sources.append((specimen, specimen.source().encode()))
        except KataFileError as problem:
            say(problem.what)
    for path in (kata.solution, kata.folder / f"test_{kata.slug}.py"):
        if not path.is_file():
            say(f"there is no {path.parent.name}/{path.name}")
    result.problems.extend(new.todos(kata))
    if not result.problems:
        result.problems.extend(pipelines.problems(kata, found))
    if result.problems:
        return result  # before minutes of grading

    try:
        reference = grade("the reference", kata.solution.read_bytes())
    except EngineFault as fault:
        if "HiddenTestFault" not in fault.details:
            raise
        lines = fault.details.rpartition("HiddenTestFault: ")[2].strip().splitlines()
        say(f"test_{kata.slug}.py cannot be used: {lines[0] if lines else fault}")
        return result
    if reference.ungraded_because:
        say(f"the reference is ungraded: {reference.ungraded_because}")
        return result
    result.broken = {finding.property: [] for finding in reference.findings}
    core = {finding.property for finding in reference.findings if finding.tier == "core"}
    for finding in reference.findings:
        if finding.outcome != "passed":
            say(f"the reference fails {finding.property}: {finding.message}")
        unknown = [need for need in finding.needs if need not in result.broken]
        if unknown:
            say(f"{finding.property} needs {unknown[0]}, which is no property")
    for name in (*REQUIRED, *kata.shapes):
        if name not in result.broken:
            say(f"test_{kata.slug}.py has no property '{name}': every kata has it under this name")

    given = handout.problems(kata)
    result.problems.extend(given)
    if not given:
        result.problems.extend(handout.problems_when_run(kata, engine))
        for level in stub.LEVELS:
            report = grade(f"the {level} stub", stub.render(kata, level).encode())
            if not report.not_written:
                say(
                    f"the untouched {level} stub is not seen as unwritten ({report.outcome}: {report.ungraded_because})"
                )

    rights = [each for each in sources if each[0].kind == "right"]
    wrongs = [each for each in sources if each[0].kind == "wrong"]
    if len(rights) < MIN_RIGHT:
        say(f"there are {len(rights)} right attempts; it takes {MIN_RIGHT}")
    if len(wrongs) < MIN_WRONG:
        say(f"there are {len(wrongs)} wrong attempts; it takes {MIN_WRONG}")

    for specimen, source in rights:
        report = grade(f"{specimen.name}.py", source)
        failed = _not_passed(report)
        if report.outcome != "passed":
            why = report.ungraded_because or _first_failure(report, core)
            say(f"{specimen.title} is rejected: {why}")
        elif failed != specimen.edge_fails:
            say(f"{specimen.title} fails the edge {_list(failed)}; it names {_list(specimen.edge_fails)}")
        if report.diagnosis:
            say(f"{specimen.title} is given a mistake")

    compared = _compared([specimen for specimen, _ in wrongs])
    for specimen, source in wrongs:
        name = f"{specimen.name}.py"
        blocked = FROM_SCRATCH in specimen.breaks  # forbidden operations are blocked in an attempt's own process only
        both = specimen in compared
        asked = None if both or whole else specimen.breaks
        local = None if blocked else workbench.grade(kata.slug, source, attempt=name, breaks=asked)
        if local is not None and asked is not None and not _as_it_says(specimen, local):
            local = workbench.grade(kata.slug, source, attempt=name)  # a later case of another property may tell
        if local is None or both:
            report = grade(name, source)
            if local is not None and _alike(local) != _alike(report):
                say(f"{specimen.title} gets another report on the workbench than in the engine")
        else:
            result.graded += 1
            report = local
        result.problems.extend(f"{name}: {note}" for note in report.notes if "diagnosis itself failed" in note)
        if report.outcome != "failed":
            why = f": {report.ungraded_because}" if report.ungraded_because else ", and a wrong attempt must fail"
            say(f"{specimen.title} is {report.outcome}{why}")
            continue
        failed = _broken(report)
        for broken in failed:
            result.broken[broken].append(specimen.name)
        if specimen.breaks - failed:
            say(f"{specimen.title} does not break {_list(specimen.breaks - failed)}; it breaks {_list(failed)}")
        if not failed & core:
            say(f"{specimen.title} breaks no core property")
        if not _is_named(specimen, report):
            named = [frozenset(mistake.id for mistake in one.mistakes) for one in report.diagnosis]
            said = " or ".join(_list(one) for one in named) or "nothing"
            say(f"{specimen.title} is diagnosed as {said}; it names {_list(specimen.mistakes)}")

    for name, killers in result.broken.items():
        if not killers:
            say(f"no wrong attempt breaks {name}")
    result.problems.extend(examples.problems(kata))  # last: it is written when the wrong attempts are right
    return result


def _is_named(specimen: Specimen, report: Report) -> bool:
    """Whether its mistakes are one of the diagnoses, or there is none where it names none."""
    named = [frozenset(mistake.id for mistake in one.mistakes) for one in report.diagnosis]
    return specimen.mistakes in named if specimen.mistakes else not named


def _as_it_says(specimen: Specimen, report: Report) -> bool:
    return report.outcome == "failed" and specimen.breaks <= _broken(report) and _is_named(specimen, report)


def _compared(wrongs: list[Specimen]) -> list[Specimen]:
    """A few wrong attempts that are graded in both ways: those that together break the most properties."""
    chosen: list[Specimen] = []
    left = frozenset().union(*(specimen.breaks for specimen in wrongs)) - {FROM_SCRATCH}
    while left and len(chosen) < COMPARED:
        chosen.append(max(wrongs, key=lambda specimen: len(specimen.breaks & left)))
        left -= chosen[-1].breaks
    return chosen


def _alike(report: Report) -> Report:
    """The report without what two gradings of one attempt need not have in common: times, isolation and prints."""
    findings = [replace(finding, seconds=0.0) for finding in report.findings]
    isolation = Isolation(tier=0, landlock=0, seccomp=False, notes=[])
    return replace(report, findings=findings, seconds={}, isolation=isolation, attempt_output="")


def _unknown(kata: Kata) -> Iterator[str]:
    """A sentence for each file and folder in the kata's folder that nothing reads. Hidden ones are left alone."""
    known = [*_FILES, f"test_{kata.slug}.py", *_FOLDERS]
    for path in _visible(kata.folder):
        if path.name not in known or path.is_dir() != (path.name in _FOLDERS):
            kind = "folder" if path.is_dir() else "file"
            yield f"the {kind} '{path.name}' is unknown; a kata's folder holds {', '.join(known)}"
    for path in (*_visible(kata.folder / "right"), *_visible(kata.folder / "wrong")):
        if path.is_dir() or path.suffix != ".py":
            yield f"'{path.parent.name}/{path.name}' is unknown; {path.parent.name}/ holds Python files alone"


def _hints_about_nothing(kata: Kata) -> Iterator[str]:
    """A sentence for each key of [hint_for] that is neither the id of a mistake nor what stands before its dot."""
    known = catalogue.load()
    for key in kata.hint_numbers.keys() - known.keys() - {id.partition(".")[0] for id in known}:
        yield f"kata.toml: hint_for.{key}: no mistake has this id, and none begins with it"


def _visible(folder: Path) -> list[Path]:
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if not path.name.startswith((".", "__")))


def _not_passed(report: Report) -> set[str]:
    return {finding.property for finding in report.findings if finding.outcome != "passed"}


def _broken(report: Report) -> set[str]:
    return {finding.property for finding in report.findings if finding.outcome in ("failed", "errored")}


def _first_failure(report: Report, core: set[str]) -> str:
    for finding in report.findings:
        if finding.property in core and finding.outcome != "passed":
            return f"{finding.property}: {finding.message}"
    return "?"


def _list(names: set[str] | frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def kill_matrix(kata: Kata) -> dict[str, set[str]]:
    """For each known mistake the core properties that fail it. Needs torch."""
    matrix: dict[str, set[str]] = {}
    for chosen, killers in _killed(kata, pairs=False, first=False):
        matrix.setdefault(chosen, set()).update(killers)
    return matrix


def surviving_mutants(kata: Kata) -> list[str]:
    """The mistakes, alone and in pairs, that no core property fails. Needs torch."""
    return [
        chosen for pairs in (False, True) for chosen, killers in _killed(kata, pairs=pairs, first=True) if not killers
    ]


def _killed(kata: Kata, *, pairs: bool, first: bool) -> Iterator[tuple[str, list[str]]]:
    import torch

    from attn_kata.authoring import mutants
    from attn_kata.diagnosis.pipeline import load
    from attn_kata.grading.local import Local, load_namespace, local_handle
    from attn_kata.grading.reference_cache import ReferenceCache
    from attn_kata.properties.handle import Handle

    torch.set_num_threads(1)  # small tensors: threads cost more than they give
    tests = mutants.hidden_tests(kata.folder)
    answers = ReferenceCache(Local(load_namespace(kata.solution)))  # hundreds of mutants ask it the same
    reference = Handle(answers, kata.returns)
    for pipeline in load(kata.folder).PIPELINES:
        known = mutants.Known(pipeline, local_handle(kata.solution, kata.returns))
        for chosen in mutants.choices(pipeline, pairs=pairs):
            mutant = mutants.handle(kata.solution, pipeline, chosen, kata.returns)
            killed = mutants.killers(tests, mutant, reference, first=first, begin=answers.begin)
            if killed or known.lacks(chosen):  # most are killed at once, which is cheaper than to compute what is known
                yield " + ".join(variant.id for variant in chosen), killed
