"""What every test starts from."""

import signal
import sys

import pytest

# A run that was started in the background may have inherited an ignored SIGINT, and would hand it on to what it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: what comes last is then short, and no worker waits for another one's half minute."""
    items.sort(key=lambda item: item.path.name != "test_every_kata.py")


def pytest_collection_finish() -> None:
    """One thread for torch, as in the engine: two of small tensors wait for one another, more so beside another worker's."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
