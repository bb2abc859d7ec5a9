"""What lies in the attempt's folder, and what the caller's environment says, reaches neither face, engine nor grader."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import attn_kata
from attn_kata import resources
from attn_kata.engine.client import Engine

# Modules that face, engine or grader import, under names that a folder of exercises may well have.
PLANTED = (
    "json",
    "click",
    "torch",
    "tomllib",
    "tomli",
    "pytest",
    "_pytest",
    "rich",
    "platformdirs",
    "jinja2",
    "conftest",
    "sitecustomize",
    "usercustomize",
    "random",
    "socket",
    "select",
    "subprocess",
    "tempfile",
    "sqlite3",
    "shutil",
    "difflib",
    "secrets",
    "hmac",
    "dataclasses",
    "argparse",
    "typing_extensions",
    "sympy",
    "numpy",
    "catalog",
    "solutions",
    "katas",
    "test_sdpa",
    "mistakes",
    "sdpa_test",
)
PACKAGES = ("torch", "rich", "_pytest", "jinja2")
INI = {
    "pytest.ini": "[pytest]\naddopts = --no-such-option\n",
    "tox.ini": "[pytest]\naddopts = --no-such-option\n",
    "setup.cfg": "[tool:pytest]\naddopts = --no-such-option\n",
    "pyproject.toml": "this is not TOML [",
    "planted.pth": "import planted_by_a_pth\n",
    "pyvenv.cfg": "home = /nowhere\n",
    "kata.toml": "this is not TOML [",
}
STEERING = {
    "PYTHONSTARTUP": "@FOLDER@/sitecustomize.py",
    "PYTHONPATH": "@FOLDER@",
    "PYTHONHOME": "@FOLDER@",
    "PYTHONINSPECT": "1",
    "PYTHONWARNINGS": "error",
    "PYTHONOPTIMIZE": "2",
    "PYTEST_ADDOPTS": "--no-such-option",
    "PYTEST_PLUGINS": "conftest",
    "TORCH_LOGS": "+all",
    "TORCH_SHOW_CPP_STACKTRACES": "1",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
    "OMP_NUM_THREADS": "64",
    "LD_PRELOAD": "@FOLDER@/evil.so",
    "HOME": "@FOLDER@",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The attempt's folder, full of modules that leave a mark when they are imported."""
    folder = tmp_path / "exercises"
    folder.mkdir()
    for name in PLANTED:
        mark = f"open({str(tmp_path / 'marks')!r}, 'a').write({name!r} + '\\n')\nraise SystemExit('planted')\n"
        if name in PACKAGES:
            (folder / name).mkdir()
            (folder / name / "__init__.py").write_text(mark)
        else:
            (folder / f"{name}.py").write_text(mark)
    for name, text in INI.items():
        (folder / name).write_text(text)
    (folder / "sdpa.py").write_bytes((resources.solutions_folder() / "sdpa.py").read_bytes())
    return folder


def marks(folder: Path) -> str:
    file = folder.parent / "marks"
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize("way", ["module", "script"])
def test_the_command_grades_among_hostile_neighbours(folder, tmp_path, way):
    script = tmp_path / "bin" / "attn-kata"  # as an installer writes it
    script.parent.mkdir()
    script.write_text("import sys\nfrom attn_kata.cli import main\nsys.exit(main())\n")
    command = ["-m", "attn_kata"] if way == "module" else [str(script)]
    if way == "script":  # `python -m attn_kata` beside a folder of that name is that folder, before a line of ours runs
        mark = folder / "json.py"
        (folder / "attn_kata").mkdir()
        for name in ("__init__.py", "__main__.py"):
            (folder / "attn_kata" / name).write_text(mark.read_text())
    environment = {
        **os.environ,
        "ATTN_KATA_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(Path(attn_kata.__file__).parents[1]),
        "PYTEST_ADDOPTS": "--no-such-option",
        "PYTEST_PLUGINS": "conftest",
    }
    done = subprocess.run(
        [sys.executable, *command, "grade", "sdpa.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )

    assert marks(folder) == ""
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("PASSED  sdpa")
    assert not list(folder.rglob("__pycache__"))


@pytest.mark.parametrize("role", ["engine", "spawning"])
def test_the_engine_takes_nothing_of_the_callers_folder_or_environment(folder, monkeypatch, role):
    for name, value in STEERING.items():
        monkeypatch.setenv(name, value.replace("@FOLDER@", str(folder)))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", str(folder), ".", *sys.path])
    with Engine(_role=role) as engine:
        arguments = engine._process.args
        report = engine.grade("sdpa", Path("sdpa.py").read_bytes(), attempt="sdpa.py")
        try:
            reached = psutil.Process(engine._process.pid).environ()
        except psutil.AccessDenied:  # its memory is private, and this is an ordinary user's test
            reached = {}

    assert marks(folder) == ""
    assert report.outcome == "passed"
    assert not set(reached) & set(STEERING)
    assert str(folder) not in arguments  # which are where it imports torch from
