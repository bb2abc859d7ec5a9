"""A grow round: the next kata continues in the same file. What was written stays; the new part is appended."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Literal

from attn_kata import catalog, stub, templates
from attn_kata.errors import UsageError
from attn_kata.interview import content, stubs
from attn_kata.interview.attempts import look
from attn_kata.interview.draft import Draft, FileChanged
from attn_kata.interview.rounds import chain
from attn_kata.interview.session import Session

How = Literal["new", "continued", "restored", "elsewhere"]
SAYS: dict[str, str] = {
    "continued": "The task goes on in the same file. Your code stays as it is; the new part is at its end.",
    "restored": "Your file was gone or empty. It has again what you handed in, with the new part at its end.",
    "elsewhere": "Your file could not be read or written. A new file has what you handed in, with the new part at its end.",
}


def write(session: Session, place: int, *, handed_in: bytes) -> tuple[Path, How]:
    """The file with the new part at its end, and how it came to be. Raises UsageError when nothing can be written.

    If the file changed after it was handed in, the part is appended to what is there now. A file that is gone, empty,
    or cannot be read gets what was `handed_in`: in its place where that loses nothing, else under a free name.
    """
    path = session.files[chain(session.stages, place)[-2]]
    added = addition(session, place, handed_in)
    for _ in range(3):  # again if another editor saves it at this moment
        found = look(path)
        usable = found.source is not None and found.source.strip() != b""
        base = found.source if usable and found.source is not None else handed_in
        new = base if base.endswith(added) else base.rstrip() + added
        try:
            Draft(path, found.source or b"").write(new)
        except FileChanged:
            continue
        except (UsageError, OSError):
            break
        return path, "continued" if usable else "restored"
    return stubs.write(session, place, handed_in.rstrip() + added), "elsewhere"


def addition(session: Session, place: int, handed_in: bytes) -> bytes:
    """The new part: the task as it was told, the signatures, the worked example; without imports that are there."""
    kata = catalog.find(session.stages[place].kata)
    known = content.of_kata(kata.slug)
    there = {line.strip() for line in handed_in.decode("utf-8", "replace").splitlines()}
    code = "\n".join(
        line
        for line in stub.signatures(kata).splitlines()
        if not (line.startswith(("import ", "from ")) and line in there)
    )
    return templates.render(
        "interview_grow.py.j2",
        kata=kata,
        number=len(chain(session.stages, place)),
        task=textwrap.indent(known.task, "# ", lambda line: True).replace("# \n", "#\n"),
        signatures=code.strip("\n"),
        example=known.example.code,
    ).encode()
