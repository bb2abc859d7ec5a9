"""What every test starts from, and specimens as the hidden tests meet an attempt."""

import gc
import hashlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# jsonschema builds a parser of IRIs when it is imported, which takes longer than torch; no schema here has an IRI.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

gc.disable()  # until everything is collected: importing the tests and torch leaves almost no garbage, as in the engine

os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["HIP_VISIBLE_DEVICES"] = ""  # as in the engine: see its server.py

# A run that was started in the background may have inherited an ignored SIGINT, and would hand it on to what it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: what comes last is then short, and no worker waits for another one's half minute.

    Those are of whole katas, and of them the last ones, which have the most mistakes.
    """
    katas = [item for item in items if item.path.name == "test_every_kata.py"]
    items[:] = [*reversed(katas), *(item for item in items if item.path.name != "test_every_kata.py")]


def pytest_collection_finish() -> None:
    """One thread for torch, as in the engine: two of small tensors wait for one another, more so beside another worker's.

    And no garbage collection looks at what is loaded now: half a million objects.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _history_of_its_own(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No test reads or writes the history of whoever runs it, nor that of another test, in this process or below it."""
    name = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]  # a folder that is made when it is written to
    monkeypatch.setenv("ATTN_KATA_HOME", str(tmp_path_factory.getbasetemp() / "homes" / name))


@pytest.fixture(scope="session")
def ready() -> Iterator[Any]:
    """`ready.run(["list"], cwd=..., env=...)`: a command in a process that has loaded already; and engines that have."""
    from .ready import templates

    with templates() as running:
        yield running


@pytest.fixture(scope="session")
def shared_engine(ready: Any) -> Iterator[Any]:
    """An engine for all tests of this worker that only grade."""
    from attn_kata.engine import client

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "subprocess", ready.engines())
        engine = client.Engine()
    with engine as running:
        yield running


@pytest.fixture
def ready_engines(ready: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every engine that this test starts in this process has loaded torch already. It is an engine of its own all the same."""
    from attn_kata.engine import client

    monkeypatch.setattr(client, "subprocess", ready.engines())


@pytest.fixture
def specimen_handle(tmp_path: Path) -> Callable[[str, str], Any]:
    """`specimen_handle("mha", "wrong/mask_lost")`: a handle on that attempt, run in this process."""
    from attn_kata import catalog, specimens
    from attn_kata.grading.local import local_handle  # it needs torch, which most tests do not

    def handle(slug: str, title: str) -> Any:
        file = tmp_path / f"{title.replace('/', '_')}.py"
        file.write_text(specimens.find(catalog.find(slug).folder, title).source(), "utf-8")
        return local_handle(file)

    return handle
