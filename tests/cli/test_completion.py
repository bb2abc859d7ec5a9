"""`attn-kata completion`: the scripts, and what a real shell makes of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_alone_on_stdout_and_the_line_to_install_it_on_stderr(run, shell):
    done = run("completion", shell)

    assert done.returncode == 0
    assert "_ATTN_KATA_COMPLETE" in done.stdout
    assert done.stderr.startswith("For every new shell: ")
    assert len(done.stderr.splitlines()) == 1
    if shutil.which(shell):
        assert (
            subprocess.run([shell, "-n"], input=done.stdout, text=True, capture_output=True, check=False).returncode
            == 0
        )


def test_fish_shows_a_description_with_a_comma_in_full(run):
    script = run("completion", "fish").stdout

    assert 'string split -m 1 "," $completion' in script
    assert 'string split "," $completion' not in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("attn-kata gra", ["grade"]),
        ("attn-kata grade cross", ["cross_attention"]),
        ("attn-kata start soft", ["softmax"]),
        ("attn-kata grade --format j", ["json", "junit"]),
        ("attn-kata hint no-such", []),
    ],
)
def test_a_real_bash_completes_commands_katas_and_choices(run, folder, environment, typed, offered):
    command = folder / "bin" / "attn-kata"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m attn_kata "$@"\n')
    command.chmod(0o755)
    script = run("completion", "bash").stdout
    words = typed.split(" ")
    asked = (
        f"{script}\nCOMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}\n"
        '_attn_kata_completion attn-kata\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", asked],
        cwd=folder,
        env={**environment, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.split() == offered, done.stderr
