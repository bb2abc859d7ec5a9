"""An author runs hidden tests with pytest itself. Real runs, in a copy of a kata's folder beside nothing of ours."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from attn_kata import catalog
from attn_kata.grading.hidden_tests import HiddenTestFault, load

Run = Callable[..., tuple[int, str]]
SDPA = catalog.find("sdpa").folder / "test_sdpa.py"

WRONG = """
def scaled_dot_product_attention(q, k, v):
    return (q @ k.mT / k.shape[-1]).softmax(-1) @ v
"""


ASKED = ["-q", "-p", "no:cacheprovider", "-p", "attn_kata.pytest_plugin"]
# The plugin is named here and not found, so that this holds where attn-kata was installed before it had one.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}


def run_pytest(*arguments: str, folder: Path) -> tuple[int, str]:
    """The exit code and what is told by pytest in a new Python."""
    command = [sys.executable, "-m", "pytest", *ASKED, *arguments]
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, **options)
    return done.returncode, done.stdout + done.stderr


LOADED = """
import json
import os
import sys
import tempfile

import pytest
import torch
import attn_kata.grading.hidden_tests

for line in sys.stdin:
    folder, arguments = json.loads(line)
    with tempfile.TemporaryFile() as told:
        if not (child := os.fork()):
            os.dup2(told.fileno(), 1)
            os.dup2(told.fileno(), 2)
            os.chdir(folder)
            sys.path.insert(0, folder)
            code = pytest.main(arguments)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        told.seek(0)
        print(json.dumps([code, told.read().decode()]), flush=True)
"""


@pytest.fixture(scope="module")
def run_loaded() -> Iterator[Run]:
    """`run_pytest` in processes that have imported torch and pytest already: one new Python forks for each."""
    command = [sys.executable, "-c", LOADED]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, encoding="utf-8"
    ) as python:
        assert python.stdin is not None
        assert python.stdout is not None

        def run(*arguments: str, folder: Path) -> tuple[int, str]:
            print(json.dumps([str(folder), [*ASKED, *arguments]]), file=python.stdin, flush=True)
            code, told = json.loads(python.stdout.readline())
            return code, told

        yield run
        python.stdin.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my.py").write_text(WRONG)
    return tmp_path


def test_without_an_attempt_the_reference_passes_case_by_case(folder: Path) -> None:
    code, told = run_pytest(str(SDPA), "-vv", "-k", "output_shape", folder=folder)

    assert code == 0, told
    assert "test_output_shape[B=2-H=3-Tq=4-Tk=5-D=7-Dv=6] PASSED" in told
    assert "test_output_shape[drawn] PASSED" in told
    assert re.search(r"\b\d+ passed", told)
    assert "failed" not in told


def test_a_failure_is_told_in_the_words_of_a_report(folder: Path, run_loaded: Run) -> None:
    code, told = run_loaded(str(SDPA), "--attempt", "my.py", "-x", "-k", "values", folder=folder)

    assert code == 1, told
    assert "The output is softmax(q kᵀ / sqrt(D)) v." in told
    assert "    B=2 H=3 Tq=4 Tk=5 D=7 Dv=6   out[0, 0, 0, 0] is " in told
    assert "    look at the scale, and the dimension of the softmax" in told
    assert "stopping after 1 failures" in told
    assert "assert_close" not in told  # no traceback of ours


def test_the_traceback_is_there_for_whoever_asks(folder: Path, run_loaded: Run) -> None:
    _, told = run_loaded(str(SDPA), "--attempt", "my.py", "-x", "-k", "values", "--full-trace", folder=folder)

    assert "assert_close" in told


def test_an_attempt_that_does_not_load_or_is_not_there_is_said(folder: Path, run_loaded: Run) -> None:
    (folder / "broken.py").write_text("import torch\nraise KeyError('shape')\n")

    _, told = run_loaded(str(SDPA), "--attempt", "broken.py", "-x", folder=folder)
    code, missing = run_loaded(str(SDPA), "--attempt", "typo.py", folder=folder)

    assert "broken.py raises while it is imported: KeyError: 'shape'" in told
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "there is no file 'typo.py'" in missing


def test_an_unknown_fixture_is_named_with_those_that_there_are(folder: Path, run_loaded: Run) -> None:
    (folder / "kata.toml").write_text("")
    test = folder / "test_new.py"
    test.write_text(
        'from attn_kata.properties import claims\n\n@claims("It is.")\ndef test_it(attempt, monkeypatch):\n    pass\n'
    )
    said = "test_it asks for monkeypatch; a hidden test can ask for attempt, reference, sizes"

    _, told = run_loaded(str(test), folder=folder)

    assert said in told
    with pytest.raises(HiddenTestFault, match=said):
        load(test)


def test_a_file_that_has_changed_is_loaded_anew_and_a_test_without_a_claim_is_named(folder: Path) -> None:
    path = folder / "test_new.py"
    path.write_text('from attn_kata.properties import claims\n\n@claims("It is.")\ndef test_it(attempt):\n    pass\n')
    assert [test.property.name for test in load(path)] == ["it"]
    path.write_text("def test_it(attempt):\n    pass\n")

    with pytest.raises(HiddenTestFault, match="test_it has no claim"):
        load(folder / "test_new.py")


def test_other_peoples_tests_get_no_fixtures_of_ours_and_import_nothing(folder: Path) -> None:
    (folder / "test_theirs.py").write_text(
        "import sys\n\ndef test_nothing_is_imported():\n"
        "    assert 'torch' not in sys.modules and 'attn_kata.grading' not in sys.modules\n\n"
        "def test_theirs(attempt):\n    pass\n"
    )

    _, told = run_pytest("test_theirs.py", folder=folder)

    assert "fixture 'attempt' not found" in told
    assert "1 passed, 1 error" in told
