"""The command line as a whole: help, unknown commands, start-up, the terminal, faults of our own."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

from attn_kata.cli.group import COMMANDS as COMMANDS_AND_HELP

COMMANDS = tuple(COMMANDS_AND_HELP)
QUICK = {
    "help": ("--help",),
    "list": ("list",),
    "start": ("start", "sdpa"),
    "hint": ("hint", "sdpa"),
    "status": ("status",),
    "grade --help": ("grade", "--help"),
    "a misspelt kata": ("grade", "sdap"),
}


def test_help_names_every_command_in_one_line_and_the_first_steps(run):
    done = run("--help")

    assert done.returncode == 0
    for name in COMMANDS:
        (line,) = [line for line in done.stdout.splitlines() if line.split()[:1] == [name]]
        assert not line.endswith("...")
    assert "attn-kata demo" in done.stdout


def test_help_says_of_every_command_what_the_command_says_of_itself():
    for name, said in COMMANDS_AND_HELP.items():
        command = importlib.import_module(f"attn_kata.cli.{name}").command
        assert command.get_short_help_str(limit=200) == said


def test_without_a_command_there_is_help(run):
    assert run().stdout == run("--help").stdout
    assert run().returncode == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_every_option_is_explained(run, name):
    done = run(name, "--help")

    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: attn-kata {name} ")
    for line in done.stdout.splitlines():
        assert len(line) <= 80


def test_the_version_is_said(run):
    from attn_kata import __version__

    assert run("--version").stdout == f"attn-kata {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["grde"], "Did you mean 'grade'?"),
        (["sdpa"], "attn-kata start sdpa"),
        (["start"], "The katas: attn-kata list. Then: attn-kata start KATA"),
        (["list", "--jsno"], "--json"),
        (["start", "sdpa", "extra"], "one kata at a time, not 2"),
        (["grade", "a.py", "b c.py"], "Grade them in turn: attn-kata grade a.py, then attn-kata grade 'b c.py'"),
        (["grade", "sdpa", "a.py"], "For a file of your own: attn-kata grade a.py --kata sdpa"),
        (["watch", "a.py", "b.py", "c.py"], "attn-kata watch takes one attempt at a time, not 3."),
        (["grade", "--format", "xml"], "'xml'"),
    ],
)
def test_a_usage_error_has_exit_code_2_the_way_out_and_nothing_on_stdout(run, arguments, words):
    done = run(*arguments)

    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", QUICK.values(), ids=QUICK)
def test_what_must_answer_at_once_imports_nothing_heavy(run, arguments):
    done = run(*arguments, python=("-X", "importtime"))

    imported = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "attn_kata" in imported
    rendering = {"jinja2"} if arguments[0] == "start" else set()  # the only one of them that writes a stub
    assert not imported & ({"torch", "numpy", "pytest", "rich", "subprocess", "jinja2"} - rendering)


def test_a_module_planted_in_the_current_folder_is_not_imported(run, folder):
    for name in ("json", "click", "attn_kata", "sqlite3", "rich", "tomllib"):
        (folder / f"{name}.py").write_text("open('planted', 'w').close(); raise SystemExit('planted')")
    done = subprocess.run(
        [sys.executable, "-c", "import runpy, sys; sys.path.insert(0, ''); import attn_kata"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0  # so they would be found
    (folder / "planted").unlink()
    (folder / "attn_kata.py").unlink()

    assert run("list", python=()).returncode == 0
    assert run("start", "sdpa", python=()).returncode == 0
    assert not (folder / "planted").exists()


def test_a_reader_that_goes_away_is_no_error(environment, folder):
    script = f'"{sys.executable}" -m attn_kata --help | head -n 1; exit "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, check=False, text=True
    )

    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_below_stdout_is_said(environment, folder):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "attn_kata", "list"],
            cwd=folder,
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


BROKEN = "import attn_kata.catalog as c, sys\ndef katas(): raise LookupError('lost \\x1b[31m')\nc.katas = katas\n"
BROKEN += "sys.argv = ['attn-kata', 'list']\nfrom attn_kata.cli import main\nsys.exit(main())"


def test_a_fault_of_our_own_has_a_short_text_and_a_file_to_report(environment, folder, home):
    done = subprocess.run(
        [sys.executable, "-c", BROKEN], cwd=folder, env=environment, capture_output=True, check=False, text=True
    )

    assert done.returncode == 4
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0] == "This is a bug in attn-kata, not in your code: LookupError: lost"
    (file,) = (home / "faults").iterdir()
    assert lines[1] == f"Please report it, with this file: '{file}'"
    assert "Traceback" in file.read_text("utf-8")


def test_with_debugging_on_the_traceback_is_shown(environment, folder):
    environment = {**environment, "ATTN_KATA_DEBUG": "1"}
    done = subprocess.run(
        [sys.executable, "-c", BROKEN], cwd=folder, env=environment, capture_output=True, check=False, text=True
    )

    assert done.returncode == 4
    assert "Traceback" in done.stderr


def test_in_a_terminal_of_80_columns_nothing_is_cut_or_wrapped_by_it(environment, folder):
    pexpect = pytest.importorskip("pexpect")
    pyte = pytest.importorskip("pyte")
    for arguments in (["list"], ["hint", "mha"], ["--help"]):
        printed = pexpect.run(
            f"{sys.executable} -m attn_kata {' '.join(arguments)}",
            cwd=str(folder),
            env={**environment, "TERM": "xterm-256color"},
            dimensions=(120, 80),
        ).decode()
        screen = pyte.Screen(80, 120)
        pyte.Stream(screen).feed(printed)

        lines = [line.rstrip() for line in screen.display]
        assert [line for line in lines if line] == [line.rstrip() for line in printed.splitlines() if line.strip()]


@pytest.mark.parametrize("command", [("grade", "sdpa.py"), ("solution", "sdpa", "--give-up")])
def test_who_asks_for_colour_gets_it_whatever_the_terminal_is_called(run, folder, command):
    """FORCE_COLOR says more than TERM, NO_COLOR more than both; none goes into a pipe by itself."""
    (folder / "sdpa.py").write_text("x = 1\n")

    assert "\x1b[" in run(*command, FORCE_COLOR="1", TERM="dumb").stdout
    assert "\x1b[" in run(*command, FORCE_COLOR="1", TERM="xterm-256color").stdout
    assert "\x1b" not in run(*command, FORCE_COLOR="1", NO_COLOR="1", TERM="xterm-256color").stdout
    assert "\x1b" not in run(*command, TERM="xterm-256color", COLORTERM="truecolor").stdout
