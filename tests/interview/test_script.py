"""The candidate's own tests: the whole file runs as `python FILE` would, in the sandbox of every grading."""

from __future__ import annotations

from attn_kata.cli import engine as cli_engine
from attn_kata.interview import script

OWN_TEST = b"""import sys


def double(x):
    return x + 1


if __name__ == "__main__":
    print("at", sys.argv, __file__)
    assert double(1) == 2
    assert double(2) == 4, "two is wrong"
"""


def test_own_tests_run_as_python_runs_a_file():
    with cli_engine.started() as engine:

        def ran(source: bytes) -> tuple[str, str, str]:
            seen = script.run(engine, "sdpa", source, attempt="work/sdpa.py")
            return seen.outcome, seen.output, seen.shape

        failed = ran(OWN_TEST)
        good = ran(OWN_TEST.replace(b"x + 1", b"2 * x"))
        broken = ran(b"x = (\n")
        unittest = ran(
            b"import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        pass\nunittest.main()\n"
        )
        dies = ran(b"import os\nprint('before')\nos._exit(3)\n")
        reads = ran(b"print(open('/etc/passwd').read())\n")
        endless = ran(b"for i in range(100_000):\n    print(i)\n")

    assert failed[0] == "failed"
    assert failed[1].splitlines()[0] == "at ['sdpa.py'] sdpa.py"
    assert 'File "sdpa.py", line 11, in <module>\n    assert double(2) == 4, "two is wrong"' in failed[1]
    assert failed[1].endswith("AssertionError: two is wrong")
    assert "_attn_kata" not in failed[1]
    assert good == ("passed", "at ['sdpa.py'] sdpa.py", "Your file ran to its end, without an error.")
    assert broken[1].endswith("SyntaxError: '(' was never closed")
    assert "_attn_kata" not in broken[1]
    assert (unittest[0], "Ran 1 test" in unittest[1]) == ("passed", True)
    assert (dies[0], dies[2]) == ("ungraded", "Your file did not end: it ended its process (exit status 3)")
    assert "PermissionError" in reads[1]
    assert "root:" not in reads[1]
    assert (endless[0], "printed so much" in endless[2]) == ("ungraded", True)
