"""Killed at any instant, a session keeps what it acknowledged, its deadline stays, and it goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TIMES = 200


def test_killed_at_200_random_instants_nothing_acknowledged_is_lost(home, tmp_path):
    script = Path(__file__).with_name("crash_script.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(TIMES)],
        env={**os.environ, "ATTN_KATA_HOME": str(home)},
        capture_output=True,
        encoding="utf-8",
        timeout=200,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["wrong"] == []
    assert seen["killed"] == TIMES
    assert seen["acknowledged"] > TIMES
    assert min(seen["compared"].get(what, 0) for what in ("bytes", "unknown", "answer", "ticks")) > 0, seen["compared"]
    assert {"created", "began", "saved", "ran", "submitted", "advanced", "answered", "ticked", "closed"} <= set(
        seen["kinds"]
    )
