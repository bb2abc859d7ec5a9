"""A real JupyterLab and a real Chromium, driven over the browser's own debugging protocol.

The protocol: https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
START_SECONDS, STEP_SECONDS = 60.0, 60.0


@contextmanager
def server(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """A JupyterLab that serves `folder`; its address."""
    log = folder.parent / "lab.log"
    options = ["--no-browser", "--allow-root", "--port=0", "--expose-app-in-browser", "--LabApp.news_url=None"]
    options += ["--IdentityProvider.token=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    with log.open("wb") as out:
        lab = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={folder}"],
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,
        )
    try:
        yield _wait(lambda: _found(log, rb"http://(?:localhost|127\.0\.0\.1):\d+/"), "JupyterLab did not start")
    finally:
        os.killpg(lab.pid, signal.SIGTERM)
        try:
            lab.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(lab.pid, signal.SIGKILL)
            lab.wait()


class Refused(Exception):
    """The page could not do what it was asked for: a script failed, or another page is being loaded."""


class Page:
    """A page of a browser."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._number = 0

    def call(self, method: str, **arguments: object) -> dict[str, Any]:
        """Ask the browser for something of the protocol."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": arguments}))
        while True:
            said = json.loads(self._socket.recv())
            if said.get("id") == self._number:
                if "error" in said:
                    raise Refused(said["error"])
                result: dict[str, Any] = said["result"]
                return result

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression, waited for where it is a promise."""
        made = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in made:
            raise Refused(made["exceptionDetails"])
        return made["result"].get("value")

    def until(self, script: str, what: str) -> Any:
        """The value of an expression once it is true. While the page loads, it may also fail."""

        def ask() -> Any:
            try:
                return self.run(script)
            except Refused:
                return None

        return _wait(ask, what)

    def reload(self) -> None:
        """Load the page anew, and wait until it is another one."""
        self.run("void (window.isOld = true)")
        self.call("Page.reload")
        self.until("!window.isOld", "the page was not loaded again")

    def screenshot(self, file: Path) -> None:
        """Write what the page shows."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser(profile: Path, *, size: str = "1200,1500") -> Iterator[Page]:
    """A browser with one empty page."""
    import websocket

    assert BROWSER is not None
    log = profile.with_suffix(".log")
    with log.open("wb") as out:
        running = subprocess.Popen(
            [
                BROWSER,
                *_FLAGS,
                f"--window-size={size}",
                f"--user-data-dir={profile}",
                "--remote-debugging-port=0",
                "--remote-allow-origins=*",
                "about:blank",
            ],
            stdout=out,
            stderr=out,
            # The name of its socket must be short, and a test's own temporary folder has a long one.
            env={name: value for name, value in os.environ.items() if name != "TMPDIR"},
            start_new_session=True,
        )
    try:
        port = _wait(lambda: _found(log, rb"ws://127\.0\.0\.1:(\d+)/"), "Chromium did not start")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            pages = [one for one in json.load(answer) if one["type"] == "page"]
        socket = websocket.create_connection(pages[0]["webSocketDebuggerUrl"], timeout=STEP_SECONDS)
        try:
            yield Page(socket)
        finally:
            socket.close()
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def _found(log: Path, pattern: bytes) -> str | None:
    found = re.search(pattern, log.read_bytes())
    return (found[1] if found.re.groups else found[0]).decode() if found else None


def _wait(ask: Any, what: str) -> Any:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        value = ask()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(what)
