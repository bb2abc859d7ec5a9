"""The rules for what a candidate is given: the contract, the stub, the interview. A part of `attn-kata dev check`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from attn_kata import contract, stub
from attn_kata.catalog import Kata
from attn_kata.engine.client import Engine
from attn_kata.errors import KataFileError
from attn_kata.interview import content, smoke

_IN_SCOPE = {"torch", "nn", *dir(builtins)}  # what a worked example may use beside the entry points
_LONGEST_CODE = 120


def problems(kata: Kata) -> list[str]:
    """What is wrong with the handout of a kata, one sentence each, with the file. Runs nothing."""
    try:
        asked = contract.load(kata.prompt)
    except KataFileError as problem:
        return [problem.what]  # stub and interview are made of it
    return [*_of_contract(kata, asked), *_of_stub(kata), *_of_interview(kata)]


def problems_when_run(kata: Kata, engine: Engine) -> Iterator[str]:
    """What the reference shows: the shape check of the stub and the worked example of the interview run on it."""
    reference = kata.solution.read_bytes()
    check = f"\nimport torch\n\n{stub.shape_check(kata)}"
    report = engine.grade(
        kata.slug,
        reference + check.encode(),
        attempt="the reference",
        properties=kata.shapes,
        diagnose=False,
    )
    if report.ungraded_because or report.stopped_by:
        why = report.ungraded_because or report.stopped_by
        yield f"stub.py.j2: the block shapes does not run on the reference: {why}"
    elif not report.attempt_output.strip():
        yield "stub.py.j2: the block shapes prints nothing"
    seen = smoke.run(engine, kata.slug, reference, attempt="the reference")
    if smoke.MATCHES not in seen.lines:
        yield f"interview.toml: the worked example is not what the reference gives: {' '.join(seen.lines)}"


def _of_contract(kata: Kata, asked: contract.Contract) -> Iterator[str]:
    if asked.title != kata.title:
        yield f"prompt.md, line 1: the title is '{asked.title}', and kata.toml says '{kata.title}'"
    for entry in kata.entries:
        if f"{entry}(" not in asked.told:
            yield f"prompt.md does not say '{entry}(' in what an interview tells"


def _of_stub(kata: Kata) -> Iterator[str]:
    for level in stub.LEVELS:
        try:
            found = _of_source(kata, level, stub.render(kata, level))
        except KataFileError as problem:
            found = problem.what
        if found:
            yield found
            return  # the other levels have the same template


def _of_source(kata: Kata, level: stub.Level, source: str) -> str:
    try:
        tree = ast.parse(source)
    except SyntaxError as problem:
        return f"stub.py.j2 does not make Python: {problem.msg} in '{(problem.text or '').strip()}' ({level})"
    defined = tuple(node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef)))
    if defined != kata.entries:
        return f"stub.py.j2 defines {_list(defined)}, and the entries of kata.toml are {_list(kata.entries)}"
    wide = next((line for line in source.splitlines() if len(line) > _LONGEST_CODE), "")
    if wide:
        return f"stub.py.j2 makes a line of more than {_LONGEST_CODE} characters: '{wide.strip()}' ({level})"
    if level != "blank" and "# TODO 1: " not in source:
        return 'stub.py.j2 has no step: {{ todo("...") }}'
    return ""


def _of_interview(kata: Kata) -> Iterator[str]:
    try:
        interview = content.load(kata.folder / "interview.toml")
    except KataFileError as problem:
        yield problem.what
        return
    names = [node for node in ast.walk(ast.parse(interview.example.code)) if isinstance(node, ast.Name)]
    made = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    unknown = sorted(used - made - _IN_SCOPE - set(kata.entries))
    if unknown:
        yield f"interview.toml: the worked example uses '{unknown[0]}', which is no entry of this kata"
    elif not used & set(kata.entries):
        yield f"interview.toml: the worked example calls none of the entries {_list(kata.entries)}"
    told = " ".join(interview.task.split())  # its lines are wrapped
    for question in interview.questions:
        if question.answer in told:
            yield f"prompt.md tells an interview the answer to '{question.ask}': mark it as silent"


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"
