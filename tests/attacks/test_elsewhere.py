"""The same attacks on an ordinary user's engine, and on one without Landlock, as in many containers."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import attn_kata
from attn_kata import resources
from attn_kata.report.model import Report

ONLY_ESSENTIAL = True
NOBODY = 65534
HERE = Path(__file__).parent
ROOT = resources.solutions_folder().parent
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
    code = Code(script=HERE / "elsewhere.py", package=Path(attn_kata.__file__).parents[1], root=ROOT)
    if as_nobody:
        if os.geteuid() != 0:
            pytest.skip("already an ordinary user's run: tier 1 is test_guarded.py's")
        if any(map(_closed_above, (code.script, code.package, code.root))):
            code = request.getfixturevalue("open_copy")
    command = [sys.executable, str(code.script)]
    if as_nobody:
        command = _as_nobody(command)
        for path in (canary, *canary.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)  # what an attack has left may point anywhere
    asked = {
        "tier": tier,
        "without_landlock": without_landlock,
        "attacks": [
            {"slug": attack.slug, "source": attack.bytes(canary, code.root).decode(), "asked": attack.asked}
            for attack in attacks
        ],
    }
    packages = [str(code.package), *(path for path in sys.path if path.endswith("-packages"))]
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
    return graded, open_at, as_nobody, tier


def test_withstands(attack, configuration, judge, nothing_left):
    told, open_at, as_nobody, tier = configuration
    found = told[attack.name]
    assert "fault" not in found, found["fault"]

    judge(attack, Report.from_dict(found["report"]), *open_at)
    assert nothing_left(found["session"], found["left"])
    assert (found["uid"] == NOBODY) == as_nobody
    assert_tier_is_told(found["report"]["isolation"], asked=tier)
    if "no Landlock" in open_at:  # seccomp is left: no tier is claimed, and what is open is said
        assert found["report"]["isolation"]["tier"] == 0
        assert any("No Landlock" in note for note in found["report"]["isolation"]["notes"])


def assert_tier_is_told(isolation: dict, *, asked: int) -> None:
    """Less than was asked for is told with its reason."""
    if isolation["tier"] < asked:
        assert any(note.startswith(("No namespaces", "No Landlock", "No seccomp")) for note in isolation["notes"])


@dataclass(frozen=True, kw_only=True)
class Code:
    """What is run elsewhere: the script, the folder that the package lies in, and the one that katas and solutions do."""

    script: Path
    package: Path
    root: Path


@pytest.fixture(scope="module")
def open_copy():
    """What is needed of a clone that lies in a folder of root's alone, where others can read it."""
    folder = Path(tempfile.mkdtemp(prefix="attn-kata-clone-"))
    folder.chmod(0o755)
    shutil.copy(HERE / "elsewhere.py", folder)
    unneeded = shutil.ignore_patterns("right", "wrong")  # what is compiled stays valid: the times are the same
    shutil.copytree(Path(attn_kata.__file__).parent, folder / "grader" / "attn_kata", ignore=unneeded)
    for data in (resources.katas_folder(), resources.solutions_folder(), resources.templates_folder()):
        shutil.copytree(data, folder / data.name, ignore=unneeded, dirs_exist_ok=True)
    yield Code(script=folder / "elsewhere.py", package=folder / "grader", root=folder)
    shutil.rmtree(folder)


def _as_nobody(command: list[str]) -> list[str]:
    """The command as a user that is nobody; Python shown to it, in a mount namespace, where it lies in a closed folder."""
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not here")
    pythons = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)}
    hidden = [python for python in sorted(pythons) if _closed_above(python)]
    hidden = [
        python for python in hidden if not set(hidden) & set(python.parents)
    ]  # it comes with the folder that it lies in
    if not hidden:
        return [*become, *command]
    aside = [f"$aside/{place}" for place in range(len(hidden))]
    closed = sorted({_closed_above(python) for python in hidden})
    steps = [
        "set -e",
        "aside=$(mktemp -d)",
        "mount --make-rprivate /",
        *(f"mkdir {there}; mount --bind {python} {there}" for python, there in zip(hidden, aside, strict=True)),
        *(f"mount -t tmpfs -o mode=755 none {folder}" for folder in closed),
        *(f"mkdir -p {python}; mount --bind {there} {python}" for python, there in zip(hidden, aside, strict=True)),
        *(f"umount {there}" for there in aside),
        "rm -r $aside",
        'exec "$@"',
    ]
    shown = ["unshare", "-m", "sh", "-c", "\n".join(steps), "sh", *become]
    if subprocess.run([*shown, sys.executable, "-c", ""], check=False).returncode:
        pytest.skip("Python lies in a folder of root's alone, and no mount namespace is to be had")
    return [*shown, *command]


def _closed_above(path: Path) -> Path | None:
    """The outermost folder above `path` that others may not pass through."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None
