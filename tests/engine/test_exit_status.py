"""How a process ended, in words."""

from __future__ import annotations

import sys

import pytest

from attn_kata.engine import exit_status

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the numbers of signals are Linux's")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "it ended its process (exit status 0)"),
        (255, "it ended its process (exit status 255)"),
        (-11, "it crashed (SIGSEGV)"),
        (-6, "it crashed (SIGABRT)"),
        (-24, "it used up its CPU time (SIGXCPU)"),
        (-9, "it was killed (SIGKILL), most likely because memory ran out"),
        (-15, "it was ended by SIGTERM"),
        (-40, "it was ended by signal 40"),
    ],
)
def test_an_exit_status_is_described(code, words):
    assert exit_status.describe(code) == words
