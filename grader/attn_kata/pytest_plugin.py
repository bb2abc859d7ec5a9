"""A kata's hidden tests under pytest: `python -m pytest katas/mha/test_mha.py --attempt my.py`, with -k, -x and --pdb.

pytest finds this module by its entry point wherever attn-kata is installed. It imports nothing of ours until a test file with a
kata.toml beside it is collected, so that it costs other projects nothing. A grading loads no plugin, and so not this one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_NAME = "attn-kata hidden tests"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("attn-kata", "hidden tests of a kata (attn-kata)").addoption(
        "--attempt",
        metavar="FILE",
        help="the attempt to test; the reference where it is left out. It runs in this process without a sandbox: give your "
        "own code only, and use 'attn-kata grade' for the code of others",
    )


def attempt_file(config: pytest.Config) -> Path | None:
    """The file given by --attempt. Raises UsageError where there is none."""
    given = config.getoption("--attempt")
    if given is None:
        return None
    path = config.invocation_params.dir / str(given)
    if not path.is_file():
        raise pytest.UsageError(f"--attempt: there is no file '{given}'")
    return path


def pytest_configure(config: pytest.Config) -> None:
    attempt_file(config)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> None:
    """Give fixtures to the hidden tests of a kata."""
    plugins = parent.config.pluginmanager
    if plugins.has_plugin(_NAME) or not (module_path.parent / "kata.toml").is_file():
        return
    from attn_kata.grading import pytest_fixtures

    plugins.register(pytest_fixtures, _NAME)
