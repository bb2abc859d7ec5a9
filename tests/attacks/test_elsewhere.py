"""The same attacks on an ordinary user's engine, and on one without Landlock, as in many containers."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import attn_kata
from attn_kata.report.model import Report

ONLY_ESSENTIAL = True
NOBODY = 65534
HERE = Path(__file__).parent
CONFIGURATIONS = {
    # name: tier, as nobody, without Landlock, what is open
    "unprivileged, tier 1": (1, True, False, ()),
    "unprivileged, tier 0": (0, True, False, ("tier 0",)),
    "unprivileged, tier 2": (2, True, False, ()),
    "without Landlock": (1, False, True, ("no Landlock",)),
}


@pytest.fixture(scope="module", params=CONFIGURATIONS)
def configuration(request, canary, attacks, practice):
    """The reports on every essential attack under one configuration, graded in one process: {name: what was told}."""
    tier, as_nobody, without_landlock, open_at = CONFIGURATIONS[request.param]
    command = [sys.executable, str(HERE / "elsewhere.py")]
    if as_nobody:
        if os.geteuid() != 0:
            pytest.skip("already an ordinary user's run: tier 1 is test_guarded.py's")
        command = _as_nobody(command)
        for path in (canary, *canary.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    asked = {
        "tier": tier,
        "without_landlock": without_landlock,
        "attacks": [
            {"slug": attack.slug, "source": attack.bytes(canary).decode(), "asked": attack.asked} for attack in attacks
        ],
    }
    packages = [str(Path(attn_kata.__file__).parents[1]), *(path for path in sys.path if path.endswith("-packages"))]
    done = subprocess.run(
        command,
        input=json.dumps(asked),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(packages), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["after"]["outcome"] == "passed", told["after"]
    if tier == 0:
        open_at = tuple(practice - {"tier 0 as root"})
    graded = dict(zip([attack.name for attack in attacks], told["attacks"], strict=True))
    return graded, told["session"], open_at, as_nobody, tier


def test_withstands(attack, configuration, judge, nothing_left):
    told, session, open_at, as_nobody, tier = configuration
    found = told[attack.name]

    judge(attack, Report.from_dict(found["report"]), *open_at)
    assert nothing_left(session, found["left"])
    assert (found["uid"] == NOBODY) == as_nobody
    assert_tier_is_told(found["report"]["isolation"], asked=tier)
    if "no Landlock" in open_at:  # seccomp is left: no tier is claimed, and what is open is said
        assert found["report"]["isolation"]["tier"] == 0
        assert any("No Landlock" in note for note in found["report"]["isolation"]["notes"])


def assert_tier_is_told(isolation: dict, *, asked: int) -> None:
    """Less than was asked for is told with its reason."""
    if isolation["tier"] < asked:
        assert any(note.startswith(("No namespaces", "No Landlock", "No seccomp")) for note in isolation["notes"])


def _as_nobody(command: list[str]) -> list[str]:
    """The command as a user that is nobody; Python shown to it, in a mount namespace, where it lies in a closed folder."""
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", *command]
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not here")
    for needed in (Path(sys.prefix), Path(attn_kata.__file__).resolve(), HERE):
        if _closed_above(needed) and Path(sys.base_prefix).resolve() not in (needed, *needed.parents):
            pytest.skip(f"{needed} lies in a folder of root's alone, where another user cannot run anything")
    closed = _closed_above(Path(sys.base_prefix).resolve())
    if closed is None:
        return become
    prefix = Path(sys.base_prefix).resolve()
    show = f"""
        set -e
        aside=$(mktemp -d)
        mount --make-rprivate /
        mount --bind {prefix} $aside
        mount -t tmpfs -o mode=755 none {closed}
        mkdir -p {prefix}
        mount --bind $aside {prefix}
        umount $aside
        rmdir $aside
        exec "$@"
    """
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-c", show, "sh", *become[:-2], sys.executable, "-c", ""], check=False
    )
    if tried.returncode:
        pytest.skip("Python lies in a folder of root's alone, and no mount namespace is to be had")
    return ["unshare", "-m", "sh", "-c", show, "sh", *become]


def _closed_above(path: Path) -> Path | None:
    """The outermost folder above `path` that others may not pass through."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None
