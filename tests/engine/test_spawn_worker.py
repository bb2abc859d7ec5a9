"""The engine for systems without fork: what it needs of the system, and that only its own attempt gets on its line."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
import threading

import pytest

from attn_kata.engine import spawn_worker

POSIX_ONLY = ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "syslog", "posix_ipc")


def test_it_imports_nothing_that_only_posix_has_and_never_forks():
    """As on Windows, so far as Linux can play it: no POSIX module, no fork, no pipe in select."""
    script = textwrap.dedent(f"""
        import builtins, os, sys
        import importlib.abc

        class Refuse(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path=None, target=None):
                if name in {POSIX_ONLY}:
                    raise ModuleNotFoundError(name)

        import torch  # needs some of them here, and none of them there
        for name in {POSIX_ONLY}:
            sys.modules.pop(name, None)
        sys.meta_path.insert(0, Refuse())
        for name in ("fork", "forkpty", "posix_spawn", "readv", "setsid", "killpg", "waitid", "set_blocking", "O_PATH"):
            if hasattr(os, name):
                delattr(os, name)
        import socket
        for name in ("send_fds", "recv_fds"):
            delattr(socket, name)

        from attn_kata.engine import client, spawn_server, spawn_worker
        assert "attn_kata.engine.fork_server" not in sys.modules
        assert client.Engine and spawn_server.SpawnServer and set(spawn_worker.ROLES) == {{"grader", "attempt"}}
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_only_who_knows_the_token_gets_on_the_line():
    token = b"t" * spawn_worker.TOKEN_BYTES
    with socket.create_server((spawn_worker.LOOPBACK, 0)) as listener:
        address = listener.getsockname()
        accepted: list[socket.socket] = []
        accepting = threading.Thread(target=lambda: accepted.append(spawn_worker._accept(listener, token)))
        accepting.start()
        strangers = [socket.create_connection(address) for _ in range(3)]
        strangers[0].sendall(b"x" * spawn_worker.TOKEN_BYTES)
        strangers[1].close()
        strangers[2].sendall(b"t" * 5)
        strangers[2].shutdown(socket.SHUT_WR)
        friend = socket.create_connection(address)
        friend.sendall(token + b"hello")
        accepting.join(10)

    assert accepted[0].recv(5) == b"hello"
    for line in (*accepted, *strangers, friend):
        line.close()


def test_a_process_that_never_connects_is_waited_for_and_no_longer(monkeypatch):
    monkeypatch.setattr(spawn_worker, "START_SECONDS", 0.2)
    with (
        socket.create_server((spawn_worker.LOOPBACK, 0)) as listener,
        pytest.raises(spawn_worker.AttemptDied, match="did not start"),
    ):
        spawn_worker._accept(listener, b"t" * spawn_worker.TOKEN_BYTES)
