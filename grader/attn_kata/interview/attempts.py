"""Reads the candidate's file from the disk. A missing or unreadable file is a result here, never an error."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from attn_kata import workspace
from attn_kata.errors import UsageError, why


@dataclass(frozen=True, kw_only=True)
class Found:
    """A file's bytes and the time of its last change (wall time), or why it cannot be read.

    `lost`: the file is gone or empty, so that writing it again loses nothing.
    """

    source: bytes | None
    changed: float | None
    why: str
    lost: bool = False

    @property
    def next_step(self) -> str:
        """How to get the newest saved version back."""
        before = "Restore" if self.lost else "Move it away, then restore"
        return f"{before} the newest saved version: attn-kata interview resume"


def look(path: Path) -> Found:
    """The file at `path` as it is now."""
    try:
        changed = path.stat().st_mtime
        source = workspace.read(path)
    except FileNotFoundError:
        return Found(source=None, changed=None, why=f"'{workspace.shown(path)}' is gone", lost=True)
    except UsageError as problem:
        return Found(source=None, changed=None, why=problem.what.rstrip("."))
    except OSError as problem:
        reason = f"'{workspace.shown(path)}' cannot be read ({why(problem)})"
        return Found(source=None, changed=None, why=reason)
    return Found(source=source, changed=changed, why="")


def written(path: Path) -> Found:
    """The file as `look` finds it. An emptied file counts as lost: nobody means to give up what was written."""
    found = look(path)
    if found.source is not None and not found.source.strip():
        return Found(source=None, changed=None, why=f"'{workspace.shown(path)}' is empty", lost=True)
    return found


def temporary(path: Path) -> str:
    """The prefix of temporary files with text for `path`."""
    return f"attn-kata-{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}-{path.stem}."


def strays(path: Path) -> list[Path]:
    """Files with text that a room could not write to `path`: beside it, or in the temporary folder."""
    found: list[Path] = []
    with contextlib.suppress(OSError):
        beside = path.parent.glob(f"{glob.escape(path.stem)}.room-*{path.suffix}")
        elsewhere = Path(tempfile.gettempdir()).glob(f"{glob.escape(temporary(path))}*")
        # Anybody may create a file of any name in the temporary folder. On Windows, every file has owner 0.
        ours = os.geteuid() if hasattr(os, "geteuid") else 0
        found = [one for one in sorted((*beside, *elsewhere)) if one.is_file() and one.stat().st_uid == ours]
    now = look(path).source
    return [one for one in found if look(one).source not in (None, now)]
