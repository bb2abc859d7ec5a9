"""`attn-kata watch` in a real terminal, with the real engine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from attn_kata import catalog, specimens
from attn_kata.history import History

from ..ready import Templates

pexpect = pytest.importorskip("pexpect")
pyte = pytest.importorskip("pyte")
psutil = pytest.importorskip("psutil")
pytest.importorskip("watchfiles")

SDPA = catalog.find("sdpa")
RIGHT = SDPA.solution.read_text("utf-8")
WRONG = specimens.find(SDPA.folder, "wrong/scale_missing").source()
PIECE = Path(__file__).parents[1] / "readings" / "pieces" / "undocumented_fill.py"
SECONDS = 60


class Watch:
    """A running `watch` and its screen of 80 by 24. `ready` has engines that have loaded."""

    def __init__(
        self, folder: Path, environment: dict[str, str], *arguments: str, ready: Templates | None = None
    ) -> None:
        command = [sys.executable, "-m", "attn_kata", "watch", *arguments]
        if ready is not None:
            command = ready.face("watch", *arguments)
        self.screen = pyte.Screen(80, 24)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = b""
        self.child = pexpect.spawn(
            command[0],
            command[1:],
            cwd=str(folder),
            env=environment,
            dimensions=(24, 80),
        )
        self.mode = termios.tcgetattr(self.child.child_fd)
        self.closed = False

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    def until(self, said: str, line: int | None = None, seconds: float = SECONDS) -> None:
        """Wait until the screen, or that line of it, says so."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.closed:
            shown = "\n".join(self.lines) if line is None else self.lines[line]
            if said in shown:
                return
            self.read()
        raise AssertionError(f"{said!r} was not on the screen:\n" + "\n".join(self.lines))

    def read(self, seconds: float = 0.05) -> None:
        try:
            part = self.child.read_nonblocking(65536, seconds)
        except pexpect.TIMEOUT:
            return
        except pexpect.EOF:
            self.closed = True
            return
        self.bytes += part
        self.stream.feed(part)

    def until_closed(self) -> int:
        """Wait for the end; the exit code. Everything is as it was."""
        deadline = time.monotonic() + SECONDS
        while not self.closed and time.monotonic() < deadline:
            self.read()
        self.child.close()
        assert self.bytes.rstrip().endswith(b"\x1b[?7h\x1b[?25h\x1b[?1049l")
        return self.child.exitstatus


def save(file: Path, text: str) -> None:
    """As many editors do."""
    beside = file.with_name(f".{file.name}.new")
    beside.write_text(text, "utf-8")
    os.replace(beside, file)


def test_an_evening(folder, environment, tmp_path):
    """Stub, a wrong version, a right one, a hint, the next kata: on one screen, and nothing is left at the end."""
    file = folder / "sdpa.py"
    file.write_text(WRONG, "utf-8")
    watch = Watch(folder, environment, "sdpa.py")
    watch.until("FAILED", 1)
    watch.until("(scale.missing)")
    watch.until("q quit", 23)
    face = psutil.Process(watch.child.pid)
    children = face.children(recursive=True)
    save(file, RIGHT)
    watch.until("PASSED", 1)
    watch.until("now holds  ", 3)
    save(file, "def scaled_dot_product_attention(")
    watch.until("Not graded: it is not Python")
    save(file, WRONG)
    watch.until("now fails  ", 3)
    watch.child.send("h")
    watch.until("sdpa, hint 4 of 4, about scale.missing", 0)
    watch.child.send("x")
    watch.until("FAILED", 1)
    watch.child.send("f")
    watch.until("the full report", 0)
    watch.child.send(" ")
    watch.child.send("x")
    watch.until("FAILED", 1)
    watch.child.send("n")
    watch.until("sdpa does not pass yet", 22)
    file.unlink()
    watch.until("Waiting for the file", 22)
    save(file, RIGHT)
    watch.until("PASSED", 1)
    watch.child.send("n")
    watch.until("NOT WRITTEN YET", 1)
    torch = [line for line in Path(f"/proc/{face.pid}/maps").read_text().splitlines() if "torch" in line]
    children += face.children(recursive=True)
    watch.child.send("q")
    code = watch.until_closed()

    assert code == 0
    assert torch == [], "the face imports no torch"
    assert children
    assert psutil.wait_procs(children, timeout=5)[1] == []
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_a_signal_gives_the_terminal_back(folder, environment, tmp_path, number, code):
    (folder / "sdpa.py").write_text("import time\nwhile True: time.sleep(1)\n")
    watch = Watch(folder, environment, "sdpa.py")
    watch.until("Grading for the first time", 2)
    time.sleep(0.5)
    children = psutil.Process(watch.child.pid).children(recursive=True)
    watch.child.kill(number)

    assert watch.until_closed() == code
    assert psutil.wait_procs(children, timeout=5)[1] == []
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_fault_of_ours_gives_the_terminal_back_too(folder, environment, ready):
    (folder / "sdpa.py").write_text(WRONG, "utf-8")
    python, *script = ready.script(
        "import sys\n"
        "from attn_kata.watch import screen\n"
        "def draw(*a, **k): raise RuntimeError('ours')\n"
        "screen.draw = draw\n"
        "from attn_kata.cli.group import run\n"
        "sys.exit(run(['watch', 'sdpa.py']))\n"
    )
    child = pexpect.spawn(python, script, cwd=str(folder), env=environment, dimensions=(24, 80), timeout=SECONDS)
    printed = child.read()
    child.close()

    assert child.exitstatus == 4
    assert b"\x1b[?1049l" in printed
    assert printed.index(b"\x1b[?1049l") < printed.index(b"This is a bug in attn-kata")


def in_lines(folder, environment, ready, *arguments):
    """A running `watch` that is on no terminal."""
    process = subprocess.Popen(
        ready.face("watch", *arguments),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process


def test_without_a_terminal_it_prints_lines(folder, environment, ready):
    file = folder / "sdpa.py"
    file.write_text(WRONG, "utf-8")
    process = in_lines(folder, environment, ready, "sdpa.py")
    first = process.stdout.readline()
    save(file, RIGHT)
    rest = []
    while not rest or not rest[-1].startswith("PASSED"):
        rest.append(process.stdout.readline())
        assert rest[-1], "".join([first, *rest])  # else it has ended
    holds = process.stdout.readline()
    process.send_signal(signal.SIGTERM)

    assert process.wait(15) == 143
    assert first.startswith("FAILED  sdpa  sdpa.py")
    assert "(scale.missing)" in "".join(rest)
    assert holds.startswith("  now holds: ")
    assert "\x1b" not in first + "".join(rest)


METHOD = """
import torch
from torch import nn


class Captioner(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)

    def attend(self, state, features):
        weights = torch.softmax(torch.bmm(features, state.unsqueeze(2)).squeeze(2), dim=1)
        return torch.bmm(weights.unsqueeze(1), features).squeeze(1)
"""


def test_a_method_that_tells_the_kata_is_watched_alone(folder, environment, ready):
    file = folder / "mine.py"
    file.write_text(METHOD, "utf-8")
    process = in_lines(folder, environment, ready, "mine.py")
    right = process.stdout.readline()
    save(file, METHOD.replace("dim=1)", "dim=0)"))
    wrong = process.stdout.readline()
    while wrong and "FAILED" not in wrong:
        wrong = process.stdout.readline()
    process.send_signal(signal.SIGTERM)

    assert process.wait(15) == 143
    assert right.startswith("RIGHT, AS READ  multiplicative_attention")
    assert "FAILED" in wrong


def test_code_by_other_names_keeps_its_reading_and_a_change_of_it_is_said(folder, environment, monkeypatch, ready):
    """Half typed in between, and a new meaning of its mask, which no word settles. None of it passes the kata."""
    file, right = folder / "mine.py", PIECE.read_text("utf-8")
    file.write_text(right, "utf-8")
    process = in_lines(folder, environment, ready, "mine.py", "--class", "MultiHeadAttention")

    def until(said: str) -> list[str]:
        lines = [process.stdout.readline()]
        while said not in lines[-1]:
            assert lines[-1], "".join(lines)
            lines.append(process.stdout.readline())
        return lines

    first = until("No name and no comment says what True")
    save(file, right[: len(right) // 2])
    half = until("Not graded")
    save(file, right + "\n# the same\n")
    again = until("No name and no comment says what True")
    save(file, right.replace("masked_fill(mask,", "masked_fill(mask == 0,"))
    changed = until("No name and no comment says what True")
    process.send_signal(signal.SIGTERM)

    assert process.wait(15) == 143
    assert first[0].startswith("RIGHT, AS READ  mha  mine.py")
    assert "it is not Python" in half[-1]
    assert again[0].startswith("RIGHT, AS READ")
    assert not any("another way than before" in line for line in [*first, *again])
    assert any("Your code is read in another way than before: mask=keep" in line for line in changed)
    monkeypatch.setenv("ATTN_KATA_HOME", environment["ATTN_KATA_HOME"])
    assert list(Path(environment["ATTN_KATA_HOME"]).iterdir())
    assert History(print).passed_path("mha") is None


def test_a_save_of_a_file_that_the_attempt_imports_is_graded_too(folder, environment, ready):
    (folder / "sdpa.py").write_text(
        "from attend import weights\n\n\ndef scaled_dot_product_attention(q, k, v):\n    return weights(q, k) @ v\n",
        "utf-8",
    )
    helper = "def weights(q, k):\n    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-2)\n"
    (folder / "attend.py").write_text(helper, "utf-8")
    process = in_lines(folder, environment, ready, "sdpa.py")
    first = process.stdout.readline()
    while "attend.py, line 2" not in (line := process.stdout.readline()):
        assert line
    save(folder / "attend.py", helper.replace("-2", "-1"))
    while not (line := process.stdout.readline()).startswith("PASSED"):
        assert line
    process.send_signal(signal.SIGTERM)

    assert process.wait(15) == 143
    assert first.startswith("FAILED  sdpa  sdpa.py")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here; on Debian: apt-get install tmux")
def test_in_tmux_the_screen_that_was_there_comes_back(folder, environment, tmp_path):
    (folder / "sdpa.py").write_text(WRONG, "utf-8")
    tmux = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]

    def shown() -> str:
        return subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True).stdout

    def until(said: str) -> None:
        deadline = time.monotonic() + SECONDS
        while said not in shown():
            assert time.monotonic() < deadline, shown()
            time.sleep(0.1)

    start = [*tmux, "new-session", "-d", "-x", "80", "-y", "24", "-c", str(folder), "sh"]
    subprocess.run(start, env={**environment, "PS1": "prompt> "}, check=True)
    try:
        subprocess.run(
            [*tmux, "send-keys", f"echo before; {sys.executable} -m attn_kata watch sdpa.py", "Enter"], check=True
        )
        until("(scale.missing)")
        assert "before" not in shown()
        subprocess.run([*tmux, "send-keys", "q"], check=True)
        until("before")
        assert "(scale.missing)" not in shown()
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def test_a_missing_watchfiles_is_said_with_the_command(folder, environment):
    (folder / "sdpa.py").write_text(WRONG, "utf-8")
    script = "import sys; sys.modules['watchfiles'] = None\n"
    script += "from attn_kata.cli.group import run; sys.exit(run(['watch', 'sdpa.py']))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "'attn-kata watch' needs the package watchfiles.",
        "python -m pip install watchfiles",
    ]


HOSTILE = r"""
import os, signal, sys, tempfile
SAID = "\x1b]52;c;UFdORUQ=\x07\x1b]0;PWNED\x07\x1b[2J\x1b[1;1HPWNED\x9b2J\u202ePWNED\u2066\r\x08\x00"
print(SAID * 1000)
os.write(1, (SAID * 100_000).encode("utf-8", "replace"))
for step in (
    lambda: os.rename("FILE", "FILE.gone"),
    lambda: os.unlink("FILE"),
    lambda: os.symlink("/etc/passwd", "FILE.link"),
    lambda: os.kill(os.getppid(), signal.SIGKILL),
    lambda: os.killpg(0, signal.SIGTERM),
    lambda: os.fork() or os.setsid(),
    lambda: open("/dev/tty", "w").write(SAID),
    lambda: [open(f"{folder}/PWNED{i}", "wb").write(bytes(1 << 20)) for folder in ("/tmp", "/dev/shm", ".") for i in range(9)],
):
    try:
        step()
    except BaseException as error:
        print(type(error))


class Odd(Exception):
    pass


Odd.__name__ = "Odd" + SAID.replace("\0", "")


def scaled_dot_product_attention(q, k, v):
    print(SAID)
    raise Odd(SAID * 50)
"""


def test_whatever_the_file_holds_or_becomes_the_screen_is_ours_and_the_next_save_is_graded(
    folder, environment, tmp_path, ready
):
    file = folder / "sdpa.py"
    file.write_text(HOSTILE.replace("FILE", str(file)), "utf-8")
    watch = Watch(folder, environment, "sdpa.py", ready=ready)
    watch.until("FAILED", 1)
    watch.until("raised Odd")
    watch.child.send("f")
    watch.until("the full report", 0)
    watch.child.send("x")
    watch.until("raised Odd")
    for become in (
        lambda: os.mkfifo(file),
        lambda: file.symlink_to("/dev/zero"),
        lambda: file.open("wb").truncate(1 << 40),
    ):
        file.unlink()
        become()
        watch.until("Waiting for the file", 22)
        save(file, WRONG)
        watch.until("Save to grade", 22)
    save(file, RIGHT)
    watch.until("PASSED", 1)
    watch.child.send("q")

    assert watch.until_closed() == 0
    assert b"\x1b]" not in watch.bytes
    assert all(sign not in watch.bytes.decode("utf-8", "replace") for sign in "\x9b\u202e\u2066\x08\x00\x07")
    assert sorted(path.name for path in folder.iterdir()) == ["sdpa.py"]
    assert list((tmp_path / "tmp").iterdir()) == []
    assert [path for path in (Path("/tmp"), Path("/dev/shm")) if list(path.glob("PWNED*"))] == []
