"""A real kernel, in a folder and with a data folder of its own, and notebooks that are run in it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from attn_kata import catalog, specimens

SDPA = catalog.find("sdpa").folder
RIGHT = (SDPA / "right" / "plain.py").read_text("utf-8")
WRONG = specimens.find(SDPA, "wrong/scale_no_sqrt").source()


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Everything that a kernel and a server would write stays under one folder. It is returned."""
    for name in ("home", "tmp", "work"):
        (tmp_path / name).mkdir()
    told = {
        "HOME": "home",
        "TMPDIR": "tmp",
        "ATTN_KATA_HOME": "home/attn-kata",
        "IPYTHONDIR": "home/ipython",
        "JUPYTER_CONFIG_DIR": "home/jupyter-config",
        "JUPYTER_DATA_DIR": "home/jupyter-data",
        "JUPYTER_RUNTIME_DIR": "home/jupyter-run",
    }
    for name, place in told.items():
        monkeypatch.setenv(name, str(tmp_path / place))
    # Where Jupyter's own files are, also when its packages are not in this environment.
    found = importlib.util.find_spec("nbconvert")
    assert found is not None
    assert found.origin is not None
    monkeypatch.setenv("JUPYTER_PATH", str(Path(found.origin).parents[4] / "share" / "jupyter"))
    for name in ("JPY_SESSION_NAME", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    before = os.getcwd()
    os.chdir(tmp_path / "work")
    yield tmp_path
    os.chdir(before)


def notebook(*cells: str) -> nbformat.NotebookNode:
    """A notebook of code cells."""
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells], metadata=kernel)


def told(cell: nbformat.NotebookNode) -> str:
    """What a cell shows, as text."""
    said = []
    for output in cell.outputs:
        if output.output_type == "stream":
            said.append(output.text)
        elif output.output_type == "error":
            said += output.traceback
        else:
            said.append(output.data["text/plain"])
    return "\n".join(said)
