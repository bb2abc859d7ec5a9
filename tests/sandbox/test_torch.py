"""What an honest attempt does with torch works in a confined child."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("torch_trials.py")
NAMES = re.findall(r"^def (\w+)\(\):", SCRIPT.read_text(), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def said(ready, tmp_path_factory):
    """What each trial said, from one process that has imported torch as an engine does."""
    pytest.importorskip("numpy")
    found = ready.run_with_torch(SCRIPT.read_text("utf-8"), cwd=tmp_path_factory.mktemp("trials"))
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@pytest.mark.parametrize("tier", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_torch_works_confined(said, name, tier):
    assert said[f"{name} {tier}"] == "works"
