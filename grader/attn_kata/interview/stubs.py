"""The file that a candidate starts a stage with: the task as it was told, what was asked, bare signatures."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

from attn_kata import catalog, stub, templates, workspace
from attn_kata.errors import UsageError, why
from attn_kata.interview import content
from attn_kata.interview.session import Session
from attn_kata.rounds import hunt


def render(session: Session, stage: int) -> str:
    """The stub of a stage. What was asked about it in the briefing is written into it."""
    slug = session.stages[stage].kata
    known = content.of_kata(slug)
    agreed = [
        (_wrapped(known.questions[number - 1].ask), _wrapped(known.questions[number - 1].answer))
        for place, number in sorted(session.asked)
        if place == stage
    ]
    kata = catalog.find(slug)
    return templates.render(
        "interview_stub.py.j2",
        kata=kata,
        session=session.name,
        task=known.task,
        agreed=agreed,
        signatures=stub.signatures(kata),
        example=known.example.code,
    )


def _begun(session: Session, stage: int) -> bytes:
    if session.stages[stage].kind == "hunt":
        return hunt.text(catalog.find(session.stages[stage].kata), session.spoiled[stage]).encode()
    return render(session, stage).encode()


def check_folder(folder: Path) -> None:
    """Raises UsageError where `folder` could not be made, or nothing written in it. Leaves nothing behind."""
    there = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
    if not there.is_dir():
        reason = f"'{workspace.shown(there)}' is no folder"
    elif not os.access(there, os.W_OK | os.X_OK):
        reason = f"nothing can be written in '{workspace.shown(there)}'"
    else:
        return
    raise UsageError(
        f"Your files would go to '{workspace.shown(folder)}', but {reason}.",
        next_step="cd to a folder of yours, or name one: attn-kata interview start --dir DIR",
    )


def write(session: Session, stage: int, source: bytes | None = None) -> Path:
    """The stub (or `source`) on the disk, under a name that was free: nothing is ever written over. Raises UsageError."""
    one = session.stages[stage]
    slug = f"hunt_{one.kata}" if one.kind == "hunt" else one.kata
    source = _begun(session, stage) if source is None else source
    try:
        session.folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, 1000):
            path = session.folder / (f"{slug}.py" if number == 1 else f"{slug}_{number}.py")
            try:
                with path.open("xb") as file:
                    file.write(source)
            except FileExistsError:
                if path.is_file() and path.read_bytes() == source:
                    return path  # written by a command that was killed before it could say so
                continue
            return path
    except OSError as problem:
        raise UsageError(
            f"'{workspace.shown(session.folder)}' cannot be written: {why(problem)}. The clock stands.",
            next_step="End this session and start in another folder: attn-kata interview start --dir DIR",
        ) from problem
    raise UsageError(f"'{workspace.shown(session.folder)}' is full of attempts at {slug}.", next_step="Remove some")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 76, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
