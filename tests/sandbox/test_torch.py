"""What an honest attempt does with torch works in a confined child."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import attn_kata

SCRIPT = Path(__file__).with_name("torch_trials.py")
NAMES = re.findall(r"^def (\w+)\(\):", SCRIPT.read_text(), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def said():
    """What each trial said, from one process that imports torch once."""
    pytest.importorskip("numpy")
    found = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=os.environ | {"PYTHONPATH": str(Path(attn_kata.__file__).parents[1])},
        stdout=subprocess.PIPE,
        timeout=120,
        check=True,
    )
    return json.loads(found.stdout)


@pytest.mark.parametrize("tier", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_torch_works_confined(said, name, tier):
    assert said[f"{name} {tier}"] == "works"
