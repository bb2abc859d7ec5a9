"""An engine for the tests of this folder that look at whole gradings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from attn_kata.engine.client import Engine


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine() as running:
        yield running
