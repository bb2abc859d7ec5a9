"""Built and installed in four ways, the package works and leaks nothing: wheel, sdist, `pip install .`, `pip install -e .`."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KATAS = sorted(path.parent.name for path in (ROOT / "katas").glob("*/kata.toml"))


def run(*command: str | Path, cwd: Path, home: Path | None = None) -> str:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    if home is not None:
        environment["ATTN_KATA_HOME"] = str(home)
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and an sdist of the working tree. No isolation: hatchling is among the test's own needs."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--sdist", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    return folder


def environment(folder: Path) -> Path:
    """A new virtual environment that also sees this one's packages, after its own; the path of its python."""
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    scripts = "Scripts" if os.name == "nt" else "bin"
    python = folder / scripts / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    (site / "zz_the_tests_own.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def install(python: Path, *what: str | Path) -> None:
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-build-isolation"]
    run(*pip, "--no-compile", *what, cwd=python.parent)  # most of what would be compiled is never imported


def command(python: Path) -> Path:
    return python.with_name("attn-kata")


def works_from(python: Path, tmp_path: Path) -> Path:
    """List and start from an unrelated folder; the folder of the package that answered."""
    listed = run(command(python), "list", "--json", cwd=tmp_path, home=tmp_path / "home")
    run(command(python), "start", "sdpa", cwd=tmp_path, home=tmp_path / "home")
    where = run(python, "-c", "import attn_kata; print(attn_kata.__file__)", cwd=tmp_path)

    assert all(f'"{slug}"' in listed for slug in KATAS)
    assert (tmp_path / "sdpa.py").exists()
    return Path(where.strip()).parent


def test_the_wheel_holds_one_top_level_package_and_every_file_of_every_kata(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"attn_kata"}
    for folder in ("katas", "solutions", "templates"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert f"attn_kata/{path.relative_to(ROOT).as_posix()}" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("attn_kata/tests")]


def test_the_sdist_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    run(
        sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path / "again", source, cwd=tmp_path
    )
    (again,) = (tmp_path / "again").glob("*.whl")

    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_an_installed_wheel_lists_starts_and_grades(built: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    install(python, *built.glob("*.whl"))
    package = works_from(python, tmp_path)
    reference = package / "solutions" / "sdpa.py"
    report = run(command(python), "grade", reference, "--kata", "sdpa", cwd=tmp_path, home=tmp_path / "home")

    assert (tmp_path / "venv") in package.parents
    assert "PASSED" in report


def test_pip_install_of_the_folder_works(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    install(python, ROOT)

    assert (tmp_path / "venv") in works_from(python, tmp_path).parents


def test_an_editable_install_is_live(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    install(python, "-e", ROOT)

    assert works_from(python, tmp_path) == ROOT / "grader" / "attn_kata"
    assert run(python, "-c", "import importlib.util as u; print(u.find_spec('katas'))", cwd=tmp_path).strip() == "None"
