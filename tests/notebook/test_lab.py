"""The report in a real JupyterLab in a real Chromium: its text, its colours, and that a saved notebook keeps it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.notebook import lab
from tests.notebook.conftest import WRONG

pytestmark = pytest.mark.skipif(lab.BROWSER is None, reason="no Chromium here; on Debian: apt-get install chromium")

_REPORT = "document.querySelector('.attn-kata')"
_PANEL = "[...window.jupyterapp.shell.widgets('main')].find(one => one.sessionContext)"
_IDLE = f"window.jupyterapp && {_PANEL}?.sessionContext?.session?.kernel?.status === 'idle'"
_BACKGROUND = f"getComputedStyle({_REPORT}).backgroundColor"
_MARKED = f"getComputedStyle({_REPORT}.querySelector('.line.marked')).backgroundColor"


def test_the_report_in_jupyterlab(surroundings: Path) -> None:
    """From `attn-kata start --notebook` to a graded cell, as the README says, then saved and opened again."""
    work = surroundings / "work"
    start = [sys.executable, "-m", "attn_kata", "start", "--notebook", "sdpa"]
    subprocess.run(start, cwd=work, check=True, capture_output=True, timeout=30)
    file = work / "katas.ipynb"
    written = json.loads(file.read_text("utf-8"))
    written["cells"][3]["source"] = WRONG
    file.write_text(json.dumps(written), "utf-8")
    environment = dict(os.environ)

    with lab.server(work, environment) as address, lab.browser(surroundings / "chromium") as page:
        page.call("Page.navigate", url=f"{address}lab/tree/katas.ipynb")
        page.until(_IDLE, "the kernel did not start")
        page.run(f"window.jupyterapp.shell.activateById({_PANEL}.id)")
        page.run("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
        page.until(f"Boolean({_REPORT})", "no report was shown")
        page.run(f"{_REPORT}.scrollIntoView()")
        text = page.run(f"{_REPORT}.innerText")
        scripts = page.run(f"{_REPORT}.querySelectorAll('script').length")
        light = page.run(f"[{_BACKGROUND}, {_MARKED}]")
        page.screenshot(surroundings / "light.png")

        page.run("window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
        page.until("document.body.dataset.jpThemeLight === 'false'", "the theme did not change")
        dark = page.run(f"[{_BACKGROUND}, {_MARKED}]")
        page.screenshot(surroundings / "dark.png")

        page.run(f"{_PANEL}.context.save()")
        page.reload()
        page.until(f"window.jupyterapp && Boolean({_REPORT})", "the saved notebook has no report")
        again = page.run(f"{_REPORT}.innerText")
        styled = page.run(f"[{_BACKGROUND}, {_MARKED}]")

    assert text.startswith("FAILED")
    assert "scale.no_sqrt" in text
    assert "In [2], line" in text, "the line in the cell with the attempt"
    assert scripts == 0
    assert light == ["rgb(255, 255, 255)", "rgb(255, 241, 201)"]
    assert dark == ["rgb(19, 23, 28)", "rgb(74, 61, 18)"]
    assert again == text
    assert styled == dark
    assert (surroundings / "light.png").stat().st_size > 10_000
