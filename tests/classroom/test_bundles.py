"""The bundles, used as Gradescope and GitHub use them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .conftest import KATA, RIGHT, SCALE, Run, source

yaml = pytest.importorskip("yaml", reason="comes with dask, of the extra [cluster]")


def test_gradescopes_harness_runs_the_zip(tmp_path: Path, run: Run, environment: dict[str, str]) -> None:
    """/autograder as https://gradescope-autograders.readthedocs.io/en/latest/specs/ lays it out, in another place."""
    rubric = tmp_path / "rubric.toml"
    rubric.write_text("[mistakes]\nscale = 30\n")
    done = run("bundle", "gradescope", KATA, "softmax", "--out", "autograder.zip", "--rubric", rubric)
    again = run("bundle", "gradescope", KATA, "--out", "autograder.zip")
    autograder = tmp_path / "autograder"
    for name in ("source", "submission", "results"):
        (autograder / name).mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "work" / "autograder.zip") as archive:
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        archive.extractall(autograder / "source")
    shutil.copy(autograder / "source" / "run_autograder", autograder)
    (autograder / "submission" / "mine.py").write_text(source(SCALE))
    variables = {**environment, "PYTHON": sys.executable, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def bash(script: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", script]
        return subprocess.run(command, cwd="/", env=variables, capture_output=True, encoding="utf-8", timeout=120)

    setup = bash(str(autograder / "source" / "setup.sh"))
    graded = bash(str(autograder / "run_autograder"))
    results = json.loads((autograder / "results" / "results.json").read_text())
    katas = sorted(path.name for path in (autograder / "source" / "attn_kata" / "katas").iterdir())

    assert done.returncode == 0, done.stderr
    assert (again.returncode, "exists already and was not changed" in again.stderr) == (2, True)
    assert modes["setup.sh"] & modes["run_autograder"] & stat.S_IXUSR
    assert setup.returncode == 0, setup.stderr + setup.stdout
    assert graded.returncode == 0, graded.stderr
    assert katas == [KATA, "softmax"]
    assert not any(
        "/right/" in name or "wrong" in name.split("/")[-1] for name in modes if name.startswith("attn_kata/katas")
    )
    assert results["score"] == 35, "70 for one kata, and 0 for the other: its file does not define it"
    assert "−30  Scores not divided (scale.missing)" in results["output"]
    assert 'it has no "softmax"' in results["output"]
    assert "it defines" not in results["output"], "the attempt chooses those names, and could tell the seed with them"
    assert {test["name"].split(":")[0] for test in results["tests"]} == {KATA}
    assert "seed" not in json.dumps(results)


def test_githubs_workflow_is_valid_and_its_command_grades(
    tmp_path: Path, run: Run, environment: dict[str, str]
) -> None:
    done = run("bundle", "github", KATA)
    file = tmp_path / "work" / ".github" / "workflows" / "attn-kata.yml"
    workflow = yaml.safe_load(file.read_text())
    (step,) = (step for step in workflow["jobs"]["grade"]["steps"] if step.get("name") == f"Grade {KATA}")
    (tmp_path / "work" / f"{KATA}.py").write_text(source(SCALE))
    program, *arguments = shlex.split(step["run"])
    wrong = run(*arguments)
    (tmp_path / "work" / f"{KATA}.py").write_text(source(RIGHT))
    right = run(*arguments)

    assert done.returncode == 0
    assert program == "attn-kata"
    assert workflow["permissions"] == {"contents": "read"}
    assert (wrong.returncode, right.returncode) == (1, 0)
    assert re.search(rf"::error file={KATA}.py,line=\d+,title=Scores not divided", wrong.stdout)
    schema = shutil.which("check-jsonschema", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert schema, "check-jsonschema is among the packages for tests"
    checked = subprocess.run(
        [schema, "--builtin-schema", "vendor.github-workflows", str(file)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
